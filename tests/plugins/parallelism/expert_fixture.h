// A mixture of experts distributed over ranks, and the same mixture whole as the reference. Used by
// the tests of the expert plugin.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/dist/grid.h>
#include <titan/model.h>
#include <titan/nn/moe.h>
#include <titan/transform.h>

namespace titan::expert_test {

inline constexpr int64_t kDim = 6, kExperts = 8, kHidden = 12;

/// A kind of mixture and its distribution of tokens.
struct Kind {
  const char* name;
  int64_t top_k = 2;
  bool weighs_inputs = false;
  std::vector<double> gate = {};  // one gate weight per expert; {}: random
  bool forces_balance = false;
  bool has_shared_and_biases = false;
};

/// One layer "moe".
std::vector<Layer> one_mixture(const Kind& kind);
/// Allocates memory in double and sets the gate of `kind`.
void give_memory(ModelPart& part, const Kind& kind);

/// The ranks of `shape` with the axes that the plugin adds for these degrees.
dist::Grid expert_grid(const dist::MeshShape& shape, int64_t degree, int64_t tensor_degree = 1);
std::unique_ptr<Parallelism> make_expert(const TransformContext& context, int64_t degree,
                                         int64_t tensor_degree = 1);

/// (rows, tokens, dim): deterministic values between 0 and 2 that differ by rank.
at::Tensor numbers(int64_t rows, int64_t tokens, int64_t rank, double shift);

struct Passed {
  at::Tensor y, dx;
};
/// Forward and backward of the layer.
Passed pass(ModelPart& part, const at::Tensor& values, const at::Tensor& dy);

/// Within 1e-12.
void expect_close(const at::Tensor& found, const at::Tensor& expected, const std::string& what);

}  // namespace titan::expert_test
