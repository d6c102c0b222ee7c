// Dropped tokens of experts with limited capacity, against a loop over tokens under ATen's
// autograd.
#include <vector>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <titan/nn/moe.h>

#include "tests/plugins/error_of.h"

namespace titan::nn {
namespace {

using at::Tensor;

constexpr int64_t kDim = 6, kHidden = 10, kExperts = 4, kRows = 2, kLength = 9, kChoices = 2;

MoeOptions options_of(double capacity_factor, bool weighs_inputs) {
  const Init init = Init::normal(0, 0.7);
  return {.router = {.dim = kDim,
                     .num_experts = kExperts,
                     .top_k = kChoices,
                     .normalises = true,
                     .capacity_factor = capacity_factor,
                     .init = init},
          .hidden_dim = kHidden,
          .weighs_inputs = weighs_inputs,
          .gate_init = init,
          .output_init = init};
}

Tensor value_of(Module& module, const std::string& name) {
  Tensor found;
  module.visit_parameters([&](Parameter& p) {
    if (p.name() == "m." + name) found = p.value();
  });
  return found;
}

struct ByTokens {
  Tensor out;
  int64_t num_dropped = 0;
};

/// Token by token, choice by choice.
ByTokens by_tokens(MixtureOfExperts& moe, const Tensor& x, int64_t capacity, bool weighs_inputs) {
  const Tensor scores = x.matmul(value_of(moe, "router.gate.weight").t()).softmax(-1);
  const Tensor w1 = value_of(moe, "experts.w1"), w2 = value_of(moe, "experts.w2"),
               w3 = value_of(moe, "experts.w3");
  ByTokens found;
  std::vector<Tensor> rows;
  for (int64_t b = 0; b < kRows; ++b) {
    std::vector<int64_t> taken(kExperts);
    std::vector<Tensor> tokens;
    for (int64_t t = 0; t < kLength; ++t) {
      const auto [best, chosen] = scores[b][t].topk(kChoices);
      Tensor sum = at::zeros_like(x[b][t]);
      for (int64_t j = 0; j < kChoices; ++j) {
        const int64_t e = chosen[j].item<int64_t>();
        if (taken[static_cast<size_t>(e)]++ >= capacity) {
          ++found.num_dropped;
          continue;
        }
        const Tensor weight = best[j] / best.sum(), in = weighs_inputs ? x[b][t] * weight : x[b][t];
        const Tensor made = w2[e].matmul(at::silu(w1[e].matmul(in)) * w3[e].matmul(in));
        sum = sum + (weighs_inputs ? made : made * weight);
      }
      tokens.push_back(sum);
    }
    rows.push_back(at::stack(tokens));
  }
  found.out = at::stack(rows);
  return found;
}

void expect_equal(double capacity_factor, int64_t capacity, bool weighs_inputs) {
  MixtureOfExperts moe(options_of(capacity_factor, weighs_inputs));
  moe.set_names("m");
  std::vector<Tensor> leaves;
  moe.visit_parameters([&](Parameter& p) {
    if (p.is_materialized()) return;
    p.materialize(c10::kCPU, at::kDouble, 21);
    leaves.push_back(p.value());
  });
  const Tensor x = at::sin(at::arange(kRows * kLength * kDim, at::kDouble) * 1.7)
                       .view({kRows, kLength, kDim})
                       .requires_grad_();
  leaves.push_back(x);
  const Tensor upstream = at::sin(at::arange(x.numel(), at::kDouble)).view(x.sizes());
  const ByTokens expected = by_tokens(moe, x, capacity, weighs_inputs);
  EXPECT_EQ(expected.num_dropped > 0, capacity_factor > 0 && capacity < kLength) << "a weak test";
  const Tensor found = moe(x, Batch());
  EXPECT_LE((found - expected.out).abs().max().item<double>(), 1e-14);
  const auto theirs = torch::autograd::grad({expected.out}, leaves, {upstream});
  const auto ours = torch::autograd::grad({found}, leaves, {upstream});
  for (size_t i = 0; i < leaves.size(); ++i)
    EXPECT_LE((ours[i] - theirs[i]).abs().max().item<double>(), 1e-13) << "leaf " << i;
}

TEST(MoeCapacity, DropsTheChoicesThatComeAfterAnExpertIsFull) {
  for (const bool weighs_inputs : {false, true}) {
    expect_equal(0, kLength, weighs_inputs);
    expect_equal(0.75, 4, weighs_inputs);  // ceil(0.75 * 9 * 2 / 4)
    expect_equal(0.5, 3, weighs_inputs);   // ceil(2.25)
    expect_equal(0.1, 1, weighs_inputs);
    expect_equal(4, kLength, weighs_inputs);
  }
}

TEST(MoeCapacity, GivesShapesOnTheMetaDevice) {
  MixtureOfExperts moe(options_of(0.5, false));
  const Tensor x =
      at::arange(kRows * kLength * kDim, at::TensorOptions().dtype(at::kFloat).device(c10::kMeta))
          .view({kRows, kLength, kDim});
  EXPECT_EQ(moe(x, Batch()).sizes(), x.sizes());
}

}  // namespace
}  // namespace titan::nn
