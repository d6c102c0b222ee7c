#include <titan/ops/linear_cross_entropy.h>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <titan/error.h>
#include <torch/csrc/autograd/autograd.h>

#include "ops/chunks.h"
#include "ops_testing.h"

namespace titan::ops::testing::linear_cross_entropy_test {
namespace {

Function fused(const Tensor& labels) {
  return [=](const Tensors& in) -> Tensors {
    return {linear_cross_entropy(in[0], in[1], labels.to(in[0].device()))};
  };
}
Function composed(const Tensor& labels) {
  return [=](const Tensors& in) -> Tensors {
    const Tensor logits = in[0].matmul(in[1].t());
    const Tensor wide = logits.to(logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
    return {at::cross_entropy_loss(wide, labels, {}, at::Reduction::Sum, kIgnoredLabel)};
  };
}

/// Every fifth label ignored.
Tensor some_labels(int64_t n, int64_t vocab_size) {
  const Tensor labels = random_ids(vocab_size, {n});
  for (int64_t i = 2; i < n; i += 5) labels[i].fill_(kIgnoredLabel);
  return labels;
}

Tensors inputs(int64_t n, int64_t vocab_size, int64_t dim) {
  return {random({n, dim}), random({vocab_size, dim})};
}

TEST(LinearCrossEntropy, IsAsExactAsTheComposition) {
  const Tensor labels = some_labels(50, 77);
  expect_as_exact_as(composed(labels), fused(labels), inputs(50, 77, 12));
}

TEST(LinearCrossEntropy, HoldsAtTheEdgesOfChunks) {
  const int64_t vocab_size = 2053, rows = kLogitsBytes / (4 * vocab_size);
  EXPECT_EQ(logits_chunk_rows(rows, vocab_size), rows);
  EXPECT_EQ(logits_chunk_rows(rows + 1, vocab_size), rows / 2 + 1);
  for (const int64_t n : {int64_t{1}, rows - 1, rows, rows + 1, 2 * rows, 2 * rows + 3}) {
    SCOPED_TRACE(n);
    const Tensor labels = some_labels(n, vocab_size);
    expect_as_exact_as(composed(labels), fused(labels), inputs(n, vocab_size, 48));
  }
}

TEST(LinearCrossEntropy, DifferentiatesInDouble) {
  expect_gradients_by_differences(fused(some_labels(6, 5)), inputs(6, 5, 3));
}

TEST(LinearCrossEntropy, TakesNarrowTypes) {
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    const Tensor labels = some_labels(300, 4099);
    expect_as_exact_as(composed(labels), fused(labels), inputs(300, 4099, 16), type);
  }
}

TEST(LinearCrossEntropy, HoldsForLargeLogits) {
  const Tensor labels = some_labels(20, 30);
  expect_as_exact_as(composed(labels), fused(labels), {random({20, 8}) * 50, random({30, 8}) * 5});
}

TEST(LinearCrossEntropy, TakesStridedInputs) {
  const Tensor labels = some_labels(80, 16).view({40, 2}).select(1, 0);
  const auto turned = [](const Function& f) {
    return [f](const Tensors& in) { return f({in[0].t(), in[1].t()}); };
  };
  expect_as_exact_as(turned(composed(labels)), turned(fused(labels)),
                     {random({8, 40}), random({8, 16})});
}

TEST(LinearCrossEntropy, TakesNoTokensAndOnlyIgnoredTokens) {
  const Tensor none = some_labels(0, 9), ignored = at::full({7}, kIgnoredLabel, at::kLong);
  for (const auto& [labels, n] : {std::pair{none, 0}, std::pair{ignored, 7}}) {
    const Tensors in = leaves(inputs(n, 9, 4), at::kFloat);
    const Tensor loss = fused(labels)(in)[0];
    EXPECT_EQ(loss.item<double>(), 0);
    const Tensors g = torch::autograd::grad({loss}, in);
    EXPECT_EQ(g[0].sizes(), in[0].sizes());
    EXPECT_TRUE(g[1].eq(0).all().item<bool>());
    EXPECT_TRUE(g[0].eq(0).all().item<bool>());
  }
}

TEST(LinearCrossEntropy, ScalesByTheIncomingGradient) {
  const Tensor labels = some_labels(50, 77);
  const Tensors in = leaves(inputs(50, 77, 12), at::kFloat);
  const Tensors one = torch::autograd::grad({fused(labels)(in)[0]}, in);
  const Tensors half = torch::autograd::grad({fused(labels)(in)[0] / 2}, in);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(half[i].equal(one[i] / 2));
}

TEST(LinearCrossEntropy, MayBeWalkedTwice) {
  const Tensor labels = some_labels(50, 77);
  const Tensors in = leaves(inputs(50, 77, 12), at::kFloat);
  const Tensors once = torch::autograd::grad({fused(labels)(in)[0]}, in);
  const Tensor loss = fused(labels)(in)[0];
  loss.backward({}, /*retain_graph=*/true);
  (loss * 3).backward({}, /*retain_graph=*/true);
  loss.backward();
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(in[i].grad().allclose(once[i] * 5));
}

TEST(LinearCrossEntropy, ComputesOnlyTheGradientsThatAreWanted) {
  const Tensor labels = some_labels(50, 77);
  const Tensors both = leaves(inputs(50, 77, 12), at::kFloat);
  const Tensors whole = torch::autograd::grad({fused(labels)(both)[0]}, both);
  for (int i = 0; i < 2; ++i) {
    Tensors in{both[0].detach(), both[1].detach()};
    in[i].requires_grad_();
    EXPECT_TRUE(torch::autograd::grad({fused(labels)(in)[0]}, {in[i]})[0].equal(whole[i]));
    EXPECT_TRUE(torch::autograd::grad({fused(labels)(both)[0]}, {both[i]})[0].equal(whole[i]));
  }
}

TEST(LinearCrossEntropy, GivesTheSameLossWithoutGradients) {
  const Tensor labels = some_labels(600, 2048);
  const Tensors in = leaves(inputs(600, 2048, 16), at::kFloat);
  const Tensor loss = fused(labels)(in)[0];
  EXPECT_TRUE(loss.requires_grad());
  EXPECT_EQ(loss.scalar_type(), at::kFloat);
  at::NoGradGuard no_grad;
  const Tensor plain = fused(labels)(in)[0];
  EXPECT_FALSE(plain.requires_grad());
  EXPECT_EQ(plain.item<float>(), loss.item<float>());
}

TEST(LinearCrossEntropy, HasTheSameShapesOnMeta) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    expect_meta_like_real(fused(some_labels(9, 20)), inputs(9, 20, 8), type);
  }
}

TEST(LinearCrossEntropy, CannotBeDifferentiatedTwice) {
  const Tensors in = leaves(inputs(5, 7, 3), at::kFloat);
  EXPECT_THROW(torch::autograd::grad({fused(some_labels(5, 7))(in)[0]}, in, {}, std::nullopt, true),
               Error);
}

TEST(LinearCrossEntropy, NamesALabelOutsideOfTheVocabulary) {
  for (const int64_t label : {7, -1, -101}) {
    try {
      fused(at::full({5}, label, at::kLong))(inputs(5, 7, 3));
      FAIL() << "label " << label << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data);
      EXPECT_NE(error.message().find("label " + std::to_string(label)), std::string::npos);
      EXPECT_NE(error.message().find("vocabulary of 7"), std::string::npos);
    }
  }
}

TEST(LinearCrossEntropy, RefusesShapesThatDoNotFit) {
  EXPECT_THROW(linear_cross_entropy(random({5, 3}), random({7, 4}), some_labels(5, 7)), Error);
  EXPECT_THROW(linear_cross_entropy(random({5, 3}), random({7, 3}), some_labels(4, 7)), Error);
}

}  // namespace
}  // namespace titan::ops::testing::linear_cross_entropy_test
