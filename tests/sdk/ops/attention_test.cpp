#include <titan/ops/attention.h>

#include <ATen/ops/cat.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <gtest/gtest.h>
#include <titan/error.h>
#include <torch/csrc/autograd/autograd.h>

#include "ops_testing.h"

namespace titan::ops::testing::attention_test {
namespace {

Function fused(const AttentionOptions& options = {}) {
  return [=](const Tensors& in) -> Tensors { return {attention(in[0], in[1], in[2], options)}; };
}

Function composed(const AttentionOptions& options = {}) {
  return [=](const Tensors& in) -> Tensors {
    const int64_t share = in[0].size(1) / in[1].size(1);
    const Tensor k = in[1].repeat_interleave(share, 1), v = in[2].repeat_interleave(share, 1);
    Tensor scores = in[0].matmul(k.transpose(2, 3)) *
                    options.scale.value_or(1 / std::sqrt(static_cast<double>(in[0].size(3))));
    if (options.causal) {
      const Tensor future = at::ones({in[0].size(2), k.size(2)}, at::kBool).triu(1);
      scores = scores.masked_fill(future, -INFINITY);
    }
    return {at::softmax(scores, -1).matmul(v)};
  };
}

/// ATen's kernel uses an exponential with an error of about 20 ulp. It derives the scores' gradient
/// from a difference of two sums, which leaves rounding errors of the summands even where the
/// gradient is exactly 0.
constexpr Slack kFlash{.factor = 4, .roundings = 4, .absolute = 2e-6};

Tensors inputs(int64_t batch, int64_t heads, int64_t kv, int64_t queries, int64_t keys,
               int64_t hd) {
  return {random({batch, queries, heads, hd}).transpose(1, 2),
          random({batch, keys, kv, hd}).transpose(1, 2),
          random({batch, keys, kv, hd}).transpose(1, 2)};
}

TEST(Attention, IsAsExactAsTheComposition) {
  for (const int64_t seq_len : {1, 2, 70, 300}) {
    expect_as_exact_as(composed(), fused(), inputs(2, 4, 4, seq_len, seq_len, 16), at::kFloat,
                       kFlash);
  }
  const AttentionOptions all{.causal = false, .scale = 0.3};
  expect_as_exact_as(composed(all), fused(all), inputs(2, 3, 3, 50, 90, 20), at::kFloat, kFlash);
}

/// Generating a token: its query sees keys at any positions of a cache.
TEST(Attention, OfOneQueryIsAsExact) {
  const AttentionOptions all{.causal = false};
  for (const int64_t keys : {1, 3, 7, 63, 64, 65, 130, 300})
    for (const int64_t hd : {8, 16, 64, 128}) {
      Tensors in = inputs(1, 4, 2, 1, keys, hd);
      in[1] = random({1, 2, keys + 50, hd}).narrow(2, 0, keys);
      in[2] = random({1, 2, keys + 50, hd}).narrow(2, 0, keys);
      expect_as_exact_as(composed(all), fused(all), in, at::kFloat, kFlash);
    }
}

TEST(Attention, SharesKeyHeads) {
  expect_as_exact_as(composed(), fused(), inputs(2, 8, 2, 130, 130, 16), at::kFloat, kFlash);
  expect_as_exact_as(composed(), fused(), inputs(1, 6, 1, 65, 65, 32), at::kFloat, kFlash);
  const AttentionOptions all{.causal = false};
  expect_as_exact_as(composed(all), fused(all), inputs(3, 4, 2, 33, 40, 8), at::kFloat, kFlash);
}

TEST(Attention, DifferentiatesInDouble) {
  Tensors in{random({1, 4, 3, 2}), random({1, 2, 3, 2}), random({1, 2, 3, 2})};
  expect_gradients_by_differences(fused(), in);
  expect_gradients_by_differences(fused({.causal = false, .scale = 0.7}), in);
}

TEST(Attention, TakesNarrowTypes) {
  expect_as_exact_as(composed(), fused(), inputs(2, 4, 2, 70, 70, 16), at::kBFloat16);
}

TEST(Attention, TakesAnyLayout) {
  const Tensor k = random({2, 4, 16, 33}, at::kFloat).transpose(2, 3);
  const Tensor q = random({2, 33, 4, 32}, at::kFloat).narrow(3, 8, 16).transpose(1, 2);
  const Tensor v = random({2, 4, 33, 16}, at::kFloat);
  const Tensor y = attention(q, k, v);
  EXPECT_TRUE(y.allclose(attention(q.contiguous(), k.contiguous(), v), 1e-5, 1e-6));
  EXPECT_TRUE(y.transpose(1, 2).is_contiguous());
  const Tensors in = leaves({q, k, v}, at::kFloat);
  const Tensors expanded = torch::autograd::grad({fused()(in)[0].sum()}, in);
  const Tensors whole = torch::autograd::grad({fused()(in)[0]}, in, {at::ones({2, 4, 33, 16})});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(expanded[i].equal(whole[i]));
}

TEST(Attention, TakesAnEmptyBatch) {
  expect_as_exact_as(composed(), fused(), inputs(0, 4, 2, 5, 5, 8), at::kFloat, kFlash);
  EXPECT_EQ(attention(random({2, 4, 0, 8}), random({2, 2, 0, 8}), random({2, 2, 0, 8})).numel(), 0);
}

TEST(Attention, RepeatsItselfExactly) {
  const Tensors in = leaves(inputs(2, 8, 2, 300, 300, 16), at::kFloat);
  const Tensors directions = directions_for(fused(), in);
  const Tensors a = outputs_and_gradients(fused(), in, directions);
  const Tensors b = outputs_and_gradients(fused(), in, directions);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].equal(b[i]));
}

// Two blocks of keys with separate attention, joined by their logsumexps, as in ring attention.
TEST(Attention, BlocksOfKeysAddUpToTheWhole) {
  const Tensors in = inputs(2, 4, 2, 40, 60, 8);
  const AttentionOptions all{.causal = false};
  const Tensor dout = random({2, 4, 40, 8});
  const AttentionResult whole = attention_forward(in[0], in[1], in[2], all);
  const AttentionGradients exact = attention_backward(dout, in[0], in[1], in[2], whole, all);

  Tensors k{in[1].narrow(2, 0, 25), in[1].narrow(2, 25, 35)};
  Tensors v{in[2].narrow(2, 0, 25), in[2].narrow(2, 25, 35)};
  const AttentionResult a = attention_forward(in[0], k[0], v[0], all);
  const AttentionResult b = attention_forward(in[0], k[1], v[1], all);
  const Tensor lse = at::logaddexp(a.logsumexp, b.logsumexp).contiguous();
  const Tensor out = a.out * (a.logsumexp - lse).exp().unsqueeze(3) +
                     b.out * (b.logsumexp - lse).exp().unsqueeze(3);
  EXPECT_LE(max_error(lse, whole.logsumexp), 1e-13);
  EXPECT_LE(max_error(out, whole.out), 1e-13);

  const AttentionGradients da = attention_backward(dout, in[0], k[0], v[0], {out, lse}, all);
  const AttentionGradients db = attention_backward(dout, in[0], k[1], v[1], {out, lse}, all);
  EXPECT_LE(max_error(da.q + db.q, exact.q), 1e-12);
  EXPECT_LE(max_error(at::cat({da.k, db.k}, 2), exact.k), 1e-12);
  EXPECT_LE(max_error(at::cat({da.v, db.v}, 2), exact.v), 1e-12);
}

TEST(Attention, HasTheSameShapesOnMeta) {
  expect_meta_like_real(fused(), inputs(2, 4, 2, 9, 9, 8));
  expect_meta_like_real(fused(), inputs(2, 4, 2, 9, 9, 8), at::kBFloat16);
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const Tensors in = leaves(inputs(2, 4, 2, 9, 9, 8), type);
    const AttentionResult real = attention_forward(in[0], in[1], in[2]);
    const AttentionResult meta =
        attention_forward(in[0].to(at::kMeta), in[1].to(at::kMeta), in[2].to(at::kMeta));
    EXPECT_EQ(real.logsumexp.strides(), meta.logsumexp.strides());
    EXPECT_EQ(real.logsumexp.sizes(), meta.logsumexp.sizes());
    EXPECT_EQ(real.logsumexp.scalar_type(), meta.logsumexp.scalar_type());
  }
}

TEST(Attention, FollowsTheRulesForGraphs) {
  for (size_t changed = 0; changed < 3; ++changed) {
    expect_graph_rules(fused(), inputs(1, 2, 2, 5, 5, 8), changed);
  }
}

TEST(Attention, RefusesShapesThatDoNotFit) {
  const auto refused = [](const Tensors& in, const AttentionOptions& options) {
    EXPECT_THROW(attention(in[0], in[1], in[2], options), Error);
  };
  refused(inputs(1, 3, 2, 5, 5, 8), {});
  refused(inputs(1, 2, 2, 5, 6, 8), {});
  refused(inputs(1, 2, 2, 5, 0, 8), {.causal = false});
  refused({random({1, 2, 5, 8}), random({1, 2, 5, 4}), random({1, 2, 5, 4})}, {});
  refused({random({1, 2, 5, 8}), random({1, 2, 5, 8}, at::kFloat), random({1, 2, 5, 8})}, {});
}

}  // namespace
}  // namespace titan::ops::testing::attention_test
