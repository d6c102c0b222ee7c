#include <titan/ops/rms_norm.h>

#include <ATen/ops/rms_norm.h>
#include <gtest/gtest.h>
#include <titan/error.h>

#include "ops_testing.h"

namespace titan::ops::testing::rms_norm_test {
namespace {

constexpr double kEps = 1e-5;

Tensors fused(const Tensors& in) {
  return {rms_norm(in[0], in[1], kEps)};
}
Tensors composed(const Tensors& in) {
  const Tensor x = in[0];
  return {x * (x.square().mean(-1, true) + kEps).rsqrt() * in[1]};
}

TEST(RmsNorm, IsAsExactAsTheComposition) {
  for (const auto& shape : std::vector<std::vector<int64_t>>{{2, 7, 256}, {5, 33}, {16}, {3, 1}}) {
    expect_as_exact_as(composed, fused, {random(shape), random({shape.back()})});
  }
}

TEST(RmsNorm, SumsTheWeightGradientOverManyChunks) {
  for (const int64_t rows : {63, 64, 65, 4096, 5000}) {
    expect_as_exact_as(composed, fused, {random({rows, 24}), random({24})});
  }
}

TEST(RmsNorm, AgreesWithAten) {
  const Tensor x = random({4, 9, 40}, at::kFloat), w = random({40}, at::kFloat);
  EXPECT_TRUE(rms_norm(x, w, kEps).allclose(at::rms_norm(x, {40}, w, kEps), 1e-6, 1e-6));
}

TEST(RmsNorm, DifferentiatesInDouble) {
  expect_gradients_by_differences(fused, {random({3, 2, 5}), random({5})});
}

TEST(RmsNorm, TakesNarrowTypes) {
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    expect_as_exact_as(composed, fused, {random({6, 48}), random({48})}, type);
  }
  const Tensor y = rms_norm(random({2, 8}, at::kBFloat16), random({8}, at::kFloat), kEps);
  EXPECT_EQ(y.scalar_type(), at::kBFloat16);
}

TEST(RmsNorm, ReadsStridedRows) {
  const Tensor wide = random({6, 5, 40});
  const Tensor w = random({20});
  for (const Tensor& x : {wide.narrow(2, 10, 20), wide.transpose(0, 1).narrow(2, 3, 20),
                          wide.transpose(1, 2).narrow(1, 0, 20).transpose(1, 2)}) {
    const Tensor single = x.to(at::kFloat), weight = w.to(at::kFloat);
    EXPECT_TRUE(rms_norm(single, weight, kEps).equal(rms_norm(single.contiguous(), weight, kEps)));
    EXPECT_TRUE(rms_norm(single, weight, kEps).is_contiguous());
  }
  const Function sliced = [](const Tensors& in) { return fused({in[0].narrow(1, 4, 20), in[1]}); };
  const Function reference = [](const Tensors& in) {
    return composed({in[0].narrow(1, 4, 20), in[1]});
  };
  expect_as_exact_as(reference, sliced, {random({30, 40}), w});
}

TEST(RmsNorm, TakesAnEmptyBatch) {
  expect_as_exact_as(composed, fused, {random({0, 4, 8}), random({8})});
}

TEST(RmsNorm, DoesNotDependOnTheNumberOfThreads) {
  expect_same_for_any_number_of_threads(fused, {random({4097, 96}), random({96})});
}

TEST(RmsNorm, HasTheSameShapesOnMeta) {
  expect_meta_like_real(fused, {random({2, 3, 8}), random({8})});
  expect_meta_like_real(fused, {random({2, 3, 8}), random({8})}, at::kBFloat16);
}

TEST(RmsNorm, FollowsTheRulesForGraphs) {
  expect_graph_rules(fused, {random({4, 8}), random({8})}, 0);
  expect_graph_rules(fused, {random({4, 8}), random({8})}, 1);
}

TEST(RmsNorm, RefusesAWeightOfAnotherSize) {
  EXPECT_THROW(rms_norm(random({2, 8}), random({7}), kEps), Error);
}

}  // namespace
}  // namespace titan::ops::testing::rms_norm_test
