// The other layers of a transformer against formulas in double and against ATen.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros_like.h>
#include <titan/nn/embedding.h>
#include <titan/nn/feed_forward.h>
#include <titan/nn/head.h>
#include <titan/nn/rms_norm.h>

#include "tests/sdk/nn/layer_fixture.h"

namespace titan::nn {
namespace {

using titan::testing::materialize;
using titan::testing::max_difference;
using titan::testing::shard_linears;
using titan::testing::weight_of;

TEST(FeedForward, EqualsTheFormulaAndAddsUpOverRanks) {
  at::NoGradGuard no_grad;
  const FeedForwardOptions options = {.dim = 16,
                                      .hidden_dim = 40,
                                      .gate_init = Init::normal(0, 0.5),
                                      .output_init = Init::normal(0, 0.5)};
  FeedForward whole(options);
  EXPECT_EQ(whole.region(), Region::gathered_to_partial);
  materialize(whole);
  const at::Tensor x = at::randn({3, 7, 16}, at::detail::createCPUGenerator(4)),
                   wide = x.to(at::kDouble);
  const auto w = [&](const char* name) { return weight_of(whole, name).to(at::kDouble); };
  const at::Tensor expected =
      at::linear(at::silu(at::linear(wide, w("w1"))) * at::linear(wide, w("w3")), w("w2"));
  EXPECT_LT(max_difference(whole(x, Batch()), expected),
            1e-4 * expected.abs().max().item<double>());

  at::Tensor sum = at::zeros_like(x);
  for (int rank = 0; rank < 2; ++rank) {
    FeedForward part(options);
    shard_linears(part, rank, 2);
    materialize(part);
    sum += part(x, Batch());
  }
  EXPECT_LT(max_difference(sum, expected), 1e-4 * expected.abs().max().item<double>());
}

TEST(Linear, ComputesThroughTheKernelItWasGiven) {
  class DoubledKernel final : public LinearKernel {
   public:
    at::Tensor matmul(const at::Tensor& x, Parameter& weight) override {
      return at::linear(x, weight.value()) * 2;
    }
  };
  at::NoGradGuard no_grad;
  Linear linear(3, 5, WeightLayout::column, Init::normal(0, 1));
  materialize(linear);
  const at::Tensor x = at::randn({2, 3}, at::detail::createCPUGenerator(5));
  const at::Tensor plain = linear(x, Batch());
  EXPECT_LT(max_difference(plain, at::linear(x, linear.weight().value())), 1e-6);
  linear.set_kernel("test", std::make_unique<DoubledKernel>());
  EXPECT_LT(max_difference(linear(x, Batch()), plain * 2), 1e-6);
}

TEST(RmsNorm, EqualsTheFormulaInDouble) {
  at::NoGradGuard no_grad;
  RmsNorm norm(24, 1e-2);  // an epsilon large enough to show
  materialize(norm);
  norm.weight().value().copy_(at::randn({24}, at::detail::createCPUGenerator(6)));
  const at::Tensor x = at::randn({2, 3, 24}, at::detail::createCPUGenerator(7)) * 0.1;
  const at::Tensor wide = x.to(at::kDouble);
  const at::Tensor expected =
      wide / (wide.square().mean(-1, true) + 1e-2).sqrt() * norm.weight().value().to(at::kDouble);
  EXPECT_LT(max_difference(norm(x, Batch()), expected), 1e-6);
}

TEST(Embedding, LooksUpTheTokensOfTheBatch) {
  Embedding embedding(11, 4, Init::normal(0, 1));
  materialize(embedding);
  const at::Tensor tokens = at::randint(11, {2, 6}, at::detail::createCPUGenerator(8), at::kLong);
  EXPECT_TRUE(at::equal(embedding(at::Tensor(), Batch{.tokens = tokens}),
                        at::embedding(embedding.weight().value(), tokens)));
}

TEST(OutputHead, GivesLogitsOrTheSumOfTokenLosses) {
  OutputHead head({.dim = 16, .vocab_size = 37, .init = Init::normal(0, 0.5)});
  materialize(head);
  const auto x = [] {
    return at::randn({2, 9, 16}, at::detail::createCPUGenerator(9)).set_requires_grad(true);
  };
  at::Tensor labels = at::randint(37, {2, 9}, at::detail::createCPUGenerator(10), at::kLong);
  labels.select(1, 4).fill_(Batch::kIgnoredLabel);

  const at::Tensor a = x(), b = x();
  const at::Tensor logits = head(a, Batch());
  EXPECT_EQ(logits.sizes(), (at::IntArrayRef{2, 9, 37}));
  const at::Tensor expected = at::cross_entropy_loss(logits.reshape({-1, 37}), labels.reshape({-1}),
                                                     {}, at::Reduction::Sum);
  expected.backward();
  const at::Tensor expected_weight_gradient = head.weight().grad().clone();
  head.weight().clear_gradient();

  const at::Tensor loss = head(b, Batch{.labels = labels});
  EXPECT_EQ(loss.dim(), 0);
  EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 1e-5 * expected.item<double>());
  loss.backward();
  EXPECT_LT(max_difference(b.grad(), a.grad()), 1e-5);
  EXPECT_LT(max_difference(head.weight().grad(), expected_weight_gradient), 1e-5);

  EXPECT_EQ(
      head(x(), Batch{.labels = at::full({2, 9}, Batch::kIgnoredLabel, at::kLong)}).item<double>(),
      0);
}

TEST(OutputHead, OwnsNoWeightWhenItIsTied) {
  Embedding embedding(11, 4, Init::normal(0, 1));
  OutputHead head({.dim = 4, .vocab_size = 11, .tied_weight = embedding.shared_weight()});
  EXPECT_EQ(&head.weight(), &embedding.weight());
  embedding.set_names("tok_embeddings");
  head.set_names("");
  EXPECT_EQ(head.weight().name(), "tok_embeddings.weight");
}

}  // namespace
}  // namespace titan::nn
