// Every operation of titan/ops with its shapes and types. Used by accuracy.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "probe.h"

namespace titan::probe {

struct Input {
  enum class Kind {
    differentiable,  ///< in the type of the run
    constant,        ///< in the type of the run
    table,           ///< float32; double for a double run
    as_it_is,        ///< integers, and floating tensors of a type of their own
    on_the_host,     ///< integers that stay on the CPU
  };
  std::string name;
  Tensor values;
  Kind kind = Kind::differentiable;
};

struct Result {
  std::string name;
  Tensor values;
  bool is_exact = false;  ///< judged by bytes: all must be equal
  double limit = 0;       ///< 0: that of the case
};
using Results = std::vector<Result>;

/// Relative errors that a correct operation stays below.
struct Limits {
  double fp32, bf16, fp16;
  double of(at::ScalarType type) const;
};

struct Case {
  std::string operation, shape;
  std::vector<at::ScalarType> types;
  Limits limits;
  bool is_large = false;  ///< of an 8B model: not on the CPU; judged by double on the same device
  /// In float32, on this device.
  std::function<std::vector<Input>(at::Device)> inputs;
  /// Outputs, then gradients.
  std::function<Results(const std::vector<Input>&)> run;
  /// What `run` is compared with; unset: `run` of the same numbers in double.
  std::function<Results(const std::vector<Input>& typed)> reference = {};
  /// Empty, or why the device cannot run it.
  std::function<std::string(const std::vector<Input>& typed)> missing = {};
};

std::vector<Case> all_cases();
/// Of the optimizer's step and of float8, which have no gradient.
void add_step_cases(std::vector<Case>& cases);
/// Wrong ones, for tests of this program: run where `--only` names one in full.
void add_planted_cases(std::vector<Case>& cases);

}  // namespace titan::probe
