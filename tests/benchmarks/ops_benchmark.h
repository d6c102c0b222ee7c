// Shared by the files of ops_benchmark.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace titan::benchmarks {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Function = std::function<Tensors(const Tensors&)>;

/// Two implementations with the same outputs. The backward, for the gradients of all inputs, is
/// measured too if the first output requires a gradient.
struct Case {
  std::string name;
  Tensors inputs;
  Function fused, composed;  ///< composed: empty if another program measures it
};

/// Benchmarks of mixtures of experts.
std::vector<Case> expert_cases();

}  // namespace titan::benchmarks
