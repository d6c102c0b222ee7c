#include <titan/ops/swiglu.h>

#include <ATen/ops/full_like.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <titan/error.h>
#include <torch/csrc/autograd/autograd.h>

#include "ops_testing.h"

namespace titan::ops::testing::swiglu_test {
namespace {

Tensors fused(const Tensors& in) {
  return {swiglu(in[0], in[1])};
}
Tensors composed(const Tensors& in) {
  return {at::silu(in[0]) * in[1]};
}

TEST(Swiglu, IsAsExactAsTheComposition) {
  for (const auto& shape :
       std::vector<std::vector<int64_t>>{{2, 5, 768}, {3, 13}, {8191}, {20000}, {1, 1}, {}}) {
    expect_as_exact_as(composed, fused, {random(shape) * 4, random(shape)});
  }
}

TEST(Swiglu, HoldsForLargeGates) {
  const Tensor gate = at::tensor({-200.0f, -90.0f, -20.0f, 20.0f, 90.0f, 200.0f}).requires_grad_();
  const Tensor y = swiglu(gate, at::full_like(gate, 1).detach());
  EXPECT_TRUE(y.allclose(at::silu(gate)));
  const Tensor slope = torch::autograd::grad({y.sum()}, {gate})[0];
  EXPECT_TRUE(slope.allclose(at::tensor({0.0f, 0.0f, 0.0f, 1.0f, 1.0f, 1.0f}), 1e-6, 1e-7));
}

TEST(Swiglu, DifferentiatesInDouble) {
  expect_gradients_by_differences(fused, {random({3, 7}), random({3, 7})});
}

TEST(Swiglu, TakesNarrowTypes) {
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    expect_as_exact_as(composed, fused, {random({6, 48}), random({6, 48})}, type);
  }
}

TEST(Swiglu, ReadsTheHalvesOfOneProjection) {
  const auto halves = [](const Function& f) {
    return [f](const Tensors& in) { return f({in[0].narrow(2, 0, 20), in[0].narrow(2, 20, 20)}); };
  };
  expect_as_exact_as(halves(composed), halves(fused), {random({3, 50, 40})});
  const auto turned = [](const Function& f) {
    return [f](const Tensors& in) { return f({in[0].t(), in[1]}); };
  };
  expect_as_exact_as(turned(composed), turned(fused), {random({9, 12}), random({12, 9})});
}

TEST(Swiglu, TakesAnEmptyBatch) {
  expect_as_exact_as(composed, fused, {random({0, 8}), random({0, 8})});
}

TEST(Swiglu, DoesNotDependOnTheNumberOfThreads) {
  expect_same_for_any_number_of_threads(fused, {random({301, 777}), random({301, 777})});
}

TEST(Swiglu, HasTheSameShapesOnMeta) {
  expect_meta_like_real(fused, {random({2, 3, 8}), random({2, 3, 8})});
}

TEST(Swiglu, FollowsTheRulesForGraphs) {
  expect_graph_rules(fused, {random({4, 8}), random({4, 8})}, 0);
  expect_graph_rules(fused, {random({4, 8}), random({4, 8})}, 1);
}

TEST(Swiglu, RefusesDifferentShapes) {
  EXPECT_THROW(swiglu(random({2, 8}), random({2, 1})), Error);
  EXPECT_THROW(swiglu(random({8}), random({8}, at::kFloat)), Error);
}

}  // namespace
}  // namespace titan::ops::testing::swiglu_test
