// What the files of ops_benchmark share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace titan::benchmarks {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Function = std::function<Tensors(const Tensors&)>;

/// Two ways to the same outputs; the backward pass, for the gradients of all inputs, is measured
/// too where the first output wants one.
struct Case {
  std::string name;
  Tensors inputs;
  Function fused, composed;  ///< composed: empty where somebody else measures it
};

/// Of mixtures of experts.
std::vector<Case> expert_cases();

}  // namespace titan::benchmarks
