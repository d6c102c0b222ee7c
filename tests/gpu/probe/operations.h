// Every operation of titan/ops with its shapes and dtypes. Used by accuracy.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "probe.h"

namespace titan::probe {

struct Input {
  enum class Kind {
    differentiable,  ///< in the dtype of the run
    constant,        ///< in the dtype of the run
    table,           ///< float32; double for a double run
    as_it_is,        ///< integers, and floating tensors with their own dtype
    on_the_host,     ///< integers that stay on the CPU
  };
  std::string name;
  Tensor values;
  Kind kind = Kind::differentiable;
};

struct Result {
  std::string name;
  Tensor values;
  bool is_exact = false;  ///< compared by bytes: all must be equal
  double limit = 0;       ///< 0: the limit of the case
};
using Results = std::vector<Result>;

/// Upper limits of relative errors.
struct Limits {
  double fp32, bf16, fp16;
  double of(at::ScalarType type) const;
};

struct Case {
  std::string operation, shape;
  std::vector<at::ScalarType> types;
  Limits limits;
  bool is_large = false;  ///< of an 8B model: not on the CPU; reference: double on the device
  /// Makes the inputs in float32, on this device.
  std::function<std::vector<Input>(at::Device)> inputs;
  /// Returns outputs, then gradients.
  std::function<Results(const std::vector<Input>&)> run;
  /// The reference; unset: `run` with the same numbers in double.
  std::function<Results(const std::vector<Input>& typed)> reference = {};
  /// Returns why the device cannot run the case, or an empty text.
  std::function<std::string(const std::vector<Input>& typed)> missing = {};
};

std::vector<Case> all_cases();
/// Cases of the optimizer's step and of float8, which have no gradient.
void add_step_cases(std::vector<Case>& cases);
/// Wrong operations, for tests of this program: run if `--only` has the full name of one.
void add_planted_cases(std::vector<Case>& cases);

}  // namespace titan::probe
