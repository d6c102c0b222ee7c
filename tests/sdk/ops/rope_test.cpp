#include <titan/ops/rope.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <titan/error.h>
#include <torch/csrc/autograd/autograd.h>

#include "ops_testing.h"

namespace titan::ops::testing::rope_test {
namespace {

struct Angles {
  Tensor cos, sin;
};

Angles tables(int64_t positions, int64_t head_dim, at::ScalarType type) {
  const Tensor j = at::arange(head_dim / 2, at::kDouble);
  const Tensor angle = at::arange(positions, at::kDouble).unsqueeze(1) * (j * -0.7).exp();
  return {angle.cos().to(type), angle.sin().to(type)};
}

/// x·cos + rotate_half(x)·sin with the tables doubled, as Hugging Face writes it.
Tensor rotate(const Tensor& x, const Angles& angles, const Tensor& positions) {
  const auto pick = [&](const Tensor& table) {
    const Tensor rows =
        positions.defined() ? table.index({positions}) : table.narrow(0, 0, x.size(1)).unsqueeze(0);
    return at::cat({rows, rows}, -1).unsqueeze(2).to(x.scalar_type());
  };
  const int64_t half = x.size(3) / 2;
  const Tensor turned = at::cat({-x.narrow(3, half, half), x.narrow(3, 0, half)}, 3);
  return x * pick(angles.cos) + turned * pick(angles.sin);
}

at::ScalarType table_type(const Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

Function fused(const Tensor& positions, int64_t length = 64) {
  return [=](const Tensors& in) -> Tensors {
    // tables rounded to fp32 in all cases, so that double and fp32 compute the same function
    const Angles t = tables(length, in[0].size(3), at::kFloat);
    const auto type = table_type(in[0]);
    const auto device = in[0].device();
    auto [q, k] = rope(in[0], in[1], t.cos.to(type).to(device), t.sin.to(type).to(device),
                       positions.defined() ? positions.to(device) : positions);
    return {q, k};
  };
}

Function composed(const Tensor& positions, int64_t length = 64) {
  return [=](const Tensors& in) -> Tensors {
    const Angles t = tables(length, in[0].size(3), at::kFloat);
    return {rotate(in[0], t, positions), rotate(in[1], t, positions)};
  };
}

TEST(Rope, IsAsExactAsTheComposition) {
  for (const int64_t head_dim : {2, 6, 16, 20, 64, 128}) {
    expect_as_exact_as(composed({}), fused({}),
                       {random({2, 9, 4, head_dim}), random({2, 9, 2, head_dim})});
  }
}

TEST(Rope, TakesPositionsPerToken) {
  const Tensor positions = random_ids(64, {3, 11});
  const Tensors in{random({3, 11, 4, 16}), random({3, 11, 1, 16})};
  expect_as_exact_as(composed(positions), fused(positions), in);
  const Tensor shared = positions.narrow(0, 0, 1);
  expect_as_exact_as(composed(shared), fused(shared), in);
}

TEST(Rope, PositionsInOrderAreTheDefault) {
  const Tensors in{random({2, 9, 4, 16}, at::kFloat), random({2, 9, 2, 16}, at::kFloat)};
  const Tensors a = fused({})(in), b = fused(at::arange(9, at::kLong).unsqueeze(0))(in);
  EXPECT_TRUE(a[0].equal(b[0]));
  EXPECT_TRUE(a[1].equal(b[1]));
}

TEST(Rope, DifferentiatesInDouble) {
  const Tensor positions = random_ids(64, {2, 3});
  expect_gradients_by_differences(fused(positions), {random({2, 3, 2, 6}), random({2, 3, 1, 6})});
  expect_gradients_by_differences(fused({}), {random({1, 3, 2, 4}), random({1, 3, 2, 4})});
}

TEST(Rope, TakesNarrowTypes) {
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    expect_as_exact_as(composed({}), fused({}), {random({2, 9, 4, 16}), random({2, 9, 2, 16})},
                       type);
  }
}

TEST(Rope, ReadsStridedHeads) {
  const auto packed = [](const Function& f) {
    return [f](const Tensors& in) {
      const Tensor heads = in[0].view({2, 9, 8, 16});
      return f({heads.narrow(2, 0, 4), heads.narrow(2, 4, 2)});
    };
  };
  expect_as_exact_as(packed(composed({})), packed(fused({})), {random({2, 9, 128})});
  const auto turned = [](const Function& f) {
    return [f](const Tensors& in) { return f({in[0].transpose(1, 2), in[1].transpose(1, 3)}); };
  };
  expect_as_exact_as(turned(composed({})), turned(fused({})),
                     {random({2, 4, 9, 16}), random({2, 16, 3, 9})});
}

TEST(Rope, TakesAnEmptyBatch) {
  expect_as_exact_as(composed({}), fused({}), {random({0, 9, 4, 16}), random({0, 9, 2, 16})});
}

TEST(Rope, GivesAGradientWhenOnlyOneResultIsUsed) {
  const auto first = [](const Function& f) {
    return [f](const Tensors& in) { return Tensors{f(in)[0] + f(in)[1].sum() * 0}; };
  };
  expect_as_exact_as(first(composed({})), first(fused({})),
                     {random({1, 5, 2, 8}), random({1, 5, 2, 8})});
  const Tensors in = leaves({random({1, 5, 2, 8}), random({1, 5, 2, 8})}, at::kFloat);
  const Tensors g = torch::autograd::grad({fused({})(in)[0].sum()}, {in[0]});
  EXPECT_EQ(g[0].sizes(), in[0].sizes());
}

TEST(Rope, DoesNotDependOnTheNumberOfThreads) {
  expect_same_for_any_number_of_threads(fused({}, 512),
                                        {random({2, 500, 8, 16}), random({2, 500, 4, 16})});
}

TEST(Rope, HasTheSameShapesOnMeta) {
  expect_meta_like_real(fused({}), {random({2, 9, 4, 16}), random({2, 9, 2, 16})});
  const Tensor positions = random_ids(64, {2, 9});
  expect_meta_like_real(fused(positions), {random({2, 9, 4, 16}), random({2, 9, 2, 16})});
}

TEST(Rope, RefusesPositionsOutsideOfTheTables) {
  const Tensors in{random({1, 3, 2, 8}, at::kFloat), random({1, 3, 2, 8}, at::kFloat)};
  const Tensor positions = at::ones({1, 3}, at::kLong);
  positions[0][2].fill_(64);
  EXPECT_THROW(fused(positions)(in), Error);
  positions[0][2].fill_(-1);
  EXPECT_THROW(fused(positions)(in), Error);
  EXPECT_THROW(fused({}, 2)(in), Error);
  EXPECT_THROW(fused(at::ones({1, 4}, at::kLong))(in), Error);
}

}  // namespace
}  // namespace titan::ops::testing::rope_test
