#include <titan/ops/linear.h>

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <titan/error.h>

#include "ops_testing.h"

namespace titan::ops::testing::linear_test {
namespace {

Tensors fused(const Tensors& in) {
  return {ops::linear(in[0], in[1])};
}
Tensors composed(const Tensors& in) {
  return {in[0].matmul(in[1].t())};
}

TEST(Linear, IsAsExactAsTheComposition) {
  for (const auto& shape :
       std::vector<std::vector<int64_t>>{{2, 7, 64}, {5, 64}, {2, 3, 4, 64}, {64}}) {
    expect_as_exact_as(composed, fused, {random(shape), random({40, 64})});
  }
}

TEST(Linear, TakesNarrowTypes) {
  expect_as_exact_as(composed, fused, {random({6, 48}), random({32, 48})}, at::kBFloat16);
}

TEST(Linear, DifferentiatesInDouble) {
  expect_gradients_by_differences(fused, {random({2, 2, 3}), random({4, 3})});
}

TEST(Linear, TakesStridedInputs) {
  const auto turned = [](const Function& f) {
    return [f](const Tensors& in) { return f({in[0].transpose(1, 2), in[1].t()}); };
  };
  expect_as_exact_as(turned(composed), turned(fused), {random({3, 24, 5}), random({24, 16})});
}

TEST(Linear, TakesAnEmptyBatch) {
  expect_as_exact_as(composed, fused, {random({0, 4, 8}), random({5, 8})});
}

TEST(Linear, ComputesOnlyTheGradientsThatAreWanted) {
  const Tensor x = random({2, 3, 8}, at::kFloat), w = random({5, 8}, at::kFloat).requires_grad_();
  ops::linear(x, w).sum().backward();
  EXPECT_TRUE(w.grad().allclose(linear_grad_weight(at::ones({2, 3, 5}), x)));
  const Tensor y = x.detach().clone().requires_grad_();
  ops::linear(y, w.detach()).sum().backward();
  EXPECT_TRUE(y.grad().allclose(linear_grad_input(at::ones({2, 3, 5}), w.detach())));
}

TEST(Linear, ItsResultMayBeChangedInPlace) {
  const Tensors in = leaves({random({2, 3, 8}), random({5, 8})}, at::kFloat);
  Tensor y = ops::linear(in[0], in[1]);
  y.mul_(2);
  y.sum().backward();
  EXPECT_TRUE(in[1].grad().allclose(2 * linear_grad_weight(at::ones({2, 3, 5}), in[0].detach())));
}

TEST(Linear, HasTheSameShapesOnMeta) {
  expect_meta_like_real(fused, {random({2, 3, 8}), random({5, 8})});
}

TEST(Linear, FollowsTheRulesForGraphs) {
  expect_graph_rules(fused, {random({4, 8}), random({5, 8})}, 0);
  expect_graph_rules(fused, {random({4, 8}), random({5, 8})}, 1);
}

TEST(Linear, RefusesShapesThatDoNotFit) {
  EXPECT_THROW(ops::linear(random({2, 8}), random({5, 7})), Error);
  EXPECT_THROW(ops::linear(random({2, 8}), random({5, 8}, at::kFloat)), Error);
}

}  // namespace
}  // namespace titan::ops::testing::linear_test
