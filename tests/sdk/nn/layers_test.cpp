// The layers of a transformer against ATen in double, and their parts on tensor-parallel ranks
// against the whole.
#include <cmath>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros_like.h>
#include <titan/nn/attention.h>
#include <titan/nn/embedding.h>
#include <titan/nn/feed_forward.h>
#include <titan/nn/head.h>
#include <titan/nn/rms_norm.h>
#include <titan/nn/rope.h>

#include "tests/sdk/nn/fake_group.h"

namespace titan::nn {
namespace {

using titan::testing::fake_group;

constexpr double kTolerance = 2e-5;

void materialize(Module& module) {
  module.set_names("m");
  module.visit_parameters([](Parameter& p) {
    if (!p.is_materialized()) p.materialize(c10::kCPU, at::kFloat, 21);
  });
}

at::Tensor weight_of(Module& module, const std::string& name) {
  at::Tensor found;
  module.visit_parameters([&](Parameter& p) {
    if (p.name() == "m." + name + ".weight") found = p.value().detach();
  });
  return found;
}

double max_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.detach().to(at::kDouble) - b.detach().to(at::kDouble)).abs().max().item<double>();
}

/// Cuts every Linear below as tensor parallelism of `size` ranks does, by its layout.
void shard_linears(Module& module, int rank, int size) {
  module.visit_modules([&](const std::string&, Module& child) {
    if (auto* linear = dynamic_cast<Linear*>(&child))
      linear->weight().shard_over(linear->layout() == WeightLayout::row ? 1 : 0,
                                  fake_group(rank, size));
  });
}

AttentionOptions attention_options(int64_t num_kv_heads) {
  return {.dim = 32,
          .num_heads = 4,
          .num_kv_heads = num_kv_heads,
          .head_dim = 8,
          .input_init = Init::normal(0, 0.4),
          .output_init = Init::normal(0, 0.4)};
}

std::shared_ptr<Rope> make_rope() {
  return std::make_shared<Rope>(8, RopeOptions{.theta = 100});
}

/// (B, S, n, hd): components j and j + hd/2 turn together by position · theta^(-2j / hd).
at::Tensor rotate(const at::Tensor& x, const at::Tensor& positions, double theta) {
  const int64_t half = x.size(-1) / 2;
  const at::Tensor frequencies =
      at::pow(theta, -at::arange(half, at::kDouble) / static_cast<double>(half));
  const at::Tensor angles =
      (positions.to(at::kDouble).unsqueeze(-1) * frequencies).unsqueeze(2);  // (B, S, 1, hd/2)
  const at::Tensor a = x.narrow(-1, 0, half), b = x.narrow(-1, half, half);
  return at::cat({a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()}, -1);
}

at::Tensor attention_in_double(Module& m, const at::Tensor& input, const at::Tensor& positions) {
  const at::Tensor x = input.to(at::kDouble);
  const int64_t rows = x.size(0), seq_len = x.size(1);
  const auto project = [&](const char* name) {
    return at::linear(x, weight_of(m, name).to(at::kDouble)).view({rows, seq_len, -1, 8});
  };
  const at::Tensor q = rotate(project("wq"), positions, 100),
                   k = rotate(project("wk"), positions, 100), v = project("wv");
  const int64_t heads_per_group = q.size(2) / k.size(2);
  const at::Tensor future = at::ones({seq_len, seq_len}, at::kBool).triu(1);
  std::vector<at::Tensor> outputs;
  for (int64_t head = 0; head < q.size(2); ++head) {
    const int64_t group = head / heads_per_group;
    const at::Tensor scores =
        at::matmul(q.select(2, head), k.select(2, group).transpose(1, 2)) / std::sqrt(8.0);
    outputs.push_back(
        at::matmul(scores.masked_fill(future, -INFINITY).softmax(-1), v.select(2, group)));
  }
  return at::linear(at::cat(outputs, -1), weight_of(m, "wo").to(at::kDouble));
}

TEST(Attention, EqualsTheFormulaInDouble) {
  at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({2, 13, 32}, at::detail::createCPUGenerator(1));
  const at::Tensor positions = at::arange(13).expand({2, 13});
  for (int64_t num_kv_heads : {1, 2, 4}) {
    Attention attention(attention_options(num_kv_heads), make_rope());
    materialize(attention);
    EXPECT_LT(max_difference(attention(x, Batch()), attention_in_double(attention, x, positions)),
              kTolerance);
    const at::Tensor jumping =
        at::randint(500, {2, 13}, at::detail::createCPUGenerator(2), at::kLong);
    EXPECT_LT(max_difference(attention(x, Batch{.positions = jumping}),
                             attention_in_double(attention, x, jumping)),
              kTolerance);
  }
}

TEST(Attention, PartialSumsOfRanksAddUpToTheWhole) {
  at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({2, 13, 32}, at::detail::createCPUGenerator(3));
  Attention whole(attention_options(2), make_rope());
  EXPECT_EQ(whole.region(), Region::gathered_to_partial);
  materialize(whole);
  at::Tensor sum = at::zeros_like(x);
  for (int rank = 0; rank < 2; ++rank) {
    Attention part(attention_options(2), make_rope());
    shard_linears(part, rank, 2);
    materialize(part);
    EXPECT_EQ(weight_of(part, "wk").sizes(), (at::IntArrayRef{8, 32}));
    EXPECT_EQ(weight_of(part, "wo").sizes(), (at::IntArrayRef{32, 16}));
    sum += part(x, Batch());
  }
  EXPECT_LT(max_difference(sum, whole(x, Batch())), kTolerance);
}

TEST(Attention, ComputesThroughTheKernelItWasGiven) {
  class ZeroKernel final : public AttentionKernel {
   public:
    at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                      const Batch&) override {
      EXPECT_EQ(q.sizes(), (at::IntArrayRef{2, 4, 5, 8}));
      EXPECT_EQ(k.sizes(), (at::IntArrayRef{2, 2, 5, 8}));
      EXPECT_EQ(v.sizes(), k.sizes());
      return at::zeros_like(q);
    }
  };
  Attention attention(attention_options(2), make_rope());
  materialize(attention);
  attention.set_kernel(std::make_unique<ZeroKernel>());
  EXPECT_EQ(attention(at::ones({2, 5, 32}), Batch()).abs().max().item<float>(), 0);
}

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
  linear.set_kernel(std::make_unique<DoubledKernel>());
  EXPECT_LT(max_difference(linear(x, Batch()), plain * 2), 1e-6);
}

TEST(RmsNorm, EqualsTheFormulaInDouble) {
  at::NoGradGuard no_grad;
  RmsNorm norm(24, 1e-2);  // an epsilon that shows
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

TEST(Rope, FrequenciesKeepInterpolateOrScaleByWavelength) {
  const RopeOptions options = {.theta = 500000, .scaling_factor = 8};
  const auto plain = rope_frequencies(128, {.theta = 500000}),
             scaled = rope_frequencies(128, options);
  ASSERT_EQ(plain.size(), 64u);
  int kept = 0, mixed = 0, divided = 0;
  for (size_t j = 0; j < plain.size(); ++j) {
    const double exact = std::pow(500000.0, -static_cast<double>(j) / 64);
    EXPECT_NEAR(plain[j] / exact, 1, 5e-7);
    const double wavelength = 2 * M_PI / exact;
    double expected = exact;
    if (wavelength > 8192) {
      expected = exact / 8, ++divided;
    } else if (wavelength >= 2048) {
      const double m = (8192 / wavelength - 1) / 3;
      expected = (1 - m) * exact / 8 + m * exact, ++mixed;
    } else {
      ++kept;
    }
    EXPECT_NEAR(scaled[j] / expected, 1, 2e-6) << j;
  }
  EXPECT_TRUE(kept > 5 && mixed > 5 && divided > 5) << kept << " " << mixed << " " << divided;
}

TEST(Rope, TablesGrowAndKeepWhatTheyHad) {
  Rope rope(8, {.theta = 10000});
  const at::Tensor small = rope.tables(5, c10::kCPU).cos;
  EXPECT_EQ(small.sizes(), (at::IntArrayRef{5, 4}));
  const Rope::Tables& grown = rope.tables(50, c10::kCPU);
  EXPECT_EQ(grown.sin.sizes(), (at::IntArrayRef{50, 4}));
  EXPECT_TRUE(at::equal(grown.cos.narrow(0, 0, 5), small));
  EXPECT_EQ(rope.tables(7, c10::kCPU).cos.size(0), 50);
  EXPECT_NEAR(grown.sin[49][1].item<double>(), std::sin(49 * 0.1), 1e-6);
  EXPECT_THROW(Rope(7, {}), Error);
}

}  // namespace
}  // namespace titan::nn
