// Attention and rotary positions against formulas in double, and the shards of tensor-parallel
// ranks against the whole.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <titan/error.h>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <titan/nn/attention.h>
#include <titan/nn/rope.h>

#include "tests/plugins/error_of.h"
#include "tests/sdk/nn/layer_fixture.h"

namespace titan::nn {
namespace {

using titan::testing::materialize;
using titan::testing::max_difference;
using titan::testing::shard_linears;
using titan::testing::weight_of;

constexpr double kTolerance = 2e-5;
constexpr double kQkEps = 0.3;  // large, so that a missing epsilon shows

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

/// (B, S, n, hd): components j and j + hd/2 rotate together by position · theta^(-2j / hd).
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
  // QK norms, if any, divide each head, or all heads of a projection, by the root mean square of
  // its elements, and multiply by the weight
  const auto normalised = [&](const at::Tensor& heads, const char* name) {
    const at::Tensor weight = weight_of(m, name);
    if (!weight.defined()) return heads;
    if (weight.numel() > 8) {
      const at::Tensor all = heads.flatten(2);
      const at::Tensor scale = (all.square().mean(-1, true) + kQkEps).rsqrt();
      return (all * scale * weight.to(at::kDouble)).view(heads.sizes());
    }
    return heads / (heads.square().mean(-1, true) + kQkEps).sqrt() * weight.to(at::kDouble);
  };
  const at::Tensor q = rotate(normalised(project("wq"), "q_norm"), positions, 100),
                   k = rotate(normalised(project("wk"), "k_norm"), positions, 100),
                   v = project("wv");
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
    // small positions: angles are fp32, and their rounding grows with the position
    const at::Tensor jumping =
        at::randint(40, {2, 13}, at::detail::createCPUGenerator(2), at::kLong);
    EXPECT_LT(max_difference(attention(x, Batch{.positions = jumping}),
                             attention_in_double(attention, x, jumping)),
              kTolerance);
  }
}

AttentionOptions with_qk_norms(AttentionOptions options) {
  options.qk_norm_eps = kQkEps;
  return options;
}

/// Norm weights start at one. Other values show which weight multiplies which element.
void spread_qk_norms(Module& m) {
  at::NoGradGuard no_grad;
  weight_of(m, "q_norm").copy_(at::arange(1, 9) / 8.0);
  weight_of(m, "k_norm").copy_(at::arange(8, 0, -1) / 4.0);
}

TEST(Attention, NormalisesHeadsOfQueriesAndKeysBeforeTheyAreRotated) {
  at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({2, 13, 32}, at::detail::createCPUGenerator(1));
  const at::Tensor positions = at::arange(13).expand({2, 13});
  for (int64_t num_kv_heads : {1, 2, 4}) {
    Attention attention(with_qk_norms(attention_options(num_kv_heads)), make_rope());
    ASSERT_TRUE(attention.q_norm() && attention.k_norm());
    materialize(attention);
    spread_qk_norms(attention);
    EXPECT_LT(max_difference(attention(x, Batch()), attention_in_double(attention, x, positions)),
              kTolerance);
  }
  Attention plain(attention_options(2), make_rope());
  EXPECT_FALSE(plain.q_norm() || plain.k_norm());
}

TEST(Attention, NormalisesQueriesAndKeysOverAllHeads) {
  at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({2, 13, 32}, at::detail::createCPUGenerator(1));
  const at::Tensor positions = at::arange(13).expand({2, 13});
  for (int64_t num_kv_heads : {2, 4}) {
    AttentionOptions options = with_qk_norms(attention_options(num_kv_heads));
    options.qk_norm_spans_heads = true;
    Attention attention(options, make_rope());
    materialize(attention);
    const int64_t key_width = num_kv_heads * 8;
    weight_of(attention, "q_norm").copy_(at::arange(1, 33) / 32.0);
    weight_of(attention, "k_norm").copy_(at::arange(key_width, 0, -1) / 16.0);
    EXPECT_EQ(attention.head_norms(),
              (std::vector<RmsNorm*>{attention.q_norm(), attention.k_norm()}));
    EXPECT_LT(max_difference(attention(x, Batch()), attention_in_double(attention, x, positions)),
              kTolerance);
  }
  EXPECT_TRUE(Attention(with_qk_norms(attention_options(2)), make_rope()).head_norms().empty());
}

TEST(Attention, WithNormsOfHeadsAddsUpOverRanksToo) {
  at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({2, 13, 32}, at::detail::createCPUGenerator(3));
  Attention whole(with_qk_norms(attention_options(2)), make_rope());
  materialize(whole);
  spread_qk_norms(whole);
  at::Tensor sum = at::zeros_like(x);
  for (int rank = 0; rank < 2; ++rank) {
    Attention part(with_qk_norms(attention_options(2)), make_rope());
    shard_linears(part, rank, 2);
    materialize(part);
    spread_qk_norms(part);
    sum += part(x, Batch());
  }
  EXPECT_LT(max_difference(sum, whole(x, Batch())), kTolerance);
}

TEST(Attention, WithNormsOfHeadsRefusesAKernelThatKnowsNothingOfThem) {
  class NoInputs final : public AttentionInputKernel {
   public:
    AttentionInputs project(const at::Tensor& x, const AttentionInputWeights&, Rope*,
                            const Batch&) override {
      return {x, x, x};
    }
  };
  Attention attention(with_qk_norms(attention_options(2)), make_rope());
  attention.set_names("layers.0.attention");
  const Error error = titan::testing::error_of(
      [&] { attention.set_input_kernel("joined", std::make_unique<NoInputs>()); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_STREQ(error.what(),
               "joined cannot compute the projections of 'layers.0.attention' and their rotation: "
               "a norm or a bias is in between, or there is no rotation");
  EXPECT_TRUE(attention.input_kernel_owners().empty());
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
  attention.set_kernel("test", std::make_unique<ZeroKernel>());
  EXPECT_EQ(attention(at::ones({2, 5, 32}), Batch()).abs().max().item<float>(), 0);
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
