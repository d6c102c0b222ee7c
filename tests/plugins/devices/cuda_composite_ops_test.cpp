// Operations that the cuda plugin composes from ATen operations, run on the CPU and compared with
// Titan's own CPU kernels (which use ATen's attention in double).
#include "plugins/devices/cuda/composite_ops.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <titan/ops/attention.h>
#include <titan/ops/embedding.h>
#include <titan/ops/fused.h>
#include <titan/ops/linear_cross_entropy.h>
#include <titan/ops/rms_norm.h>
#include <titan/ops/rope.h>
#include <titan/ops/swiglu.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/sdk/ops/ops_testing.h"

namespace titan::ops::testing {
namespace {

using composite::AttentionPath;

/// Same shape, strides and dtype, and values that differ by at most `tolerance` times the largest.
void expect_like(const Tensor& composed, const Tensor& own, double tolerance, const char* what) {
  ASSERT_EQ(composed.sizes(), own.sizes()) << what;
  EXPECT_EQ(composed.strides(), own.strides()) << what;
  EXPECT_EQ(composed.scalar_type(), own.scalar_type()) << what;
  if (own.numel() == 0) return;
  const double largest = own.detach().to(at::kDouble).abs().max().item<double>();
  EXPECT_LE(max_error(composed, own.to(at::kDouble)), tolerance * (largest + 1e-300)) << what;
}

double tolerance_of(at::ScalarType type) {
  return type == at::kDouble ? 1e-13 : type == at::kFloat ? 2e-6 : 8e-3;
}

constexpr at::ScalarType kTypes[] = {at::kDouble, at::kFloat, at::kBFloat16};

Tensor leaf(at::IntArrayRef shape, at::ScalarType type) {
  return random(shape, type).requires_grad_();
}

TEST(CudaCompositeOps, RmsNormIsThatOfTheCpu) {
  for (const at::ScalarType type : kTypes) {
    const Tensor x = leaf({3, 7, 40}, type), weight = leaf({40}, type);
    const Tensor y = rms_norm(x, weight, 1e-5), dy = random(y.sizes(), type);
    const Tensors own = torch::autograd::grad({y}, {x, weight}, {dy});
    at::NoGradGuard no_grad;
    const auto [composed, rstd] = composite::rms_norm_forward(x, weight, 1e-5);
    const auto [dx, dweight] = composite::rms_norm_backward(dy, x, weight, rstd);
    EXPECT_EQ(rstd.sizes(), at::IntArrayRef({21}));
    expect_like(composed, y, tolerance_of(type), "y");
    expect_like(dx, own[0], tolerance_of(type), "dx");
    expect_like(dweight, own[1], tolerance_of(type), "dweight");
  }
}

TEST(CudaCompositeOps, RmsNormTakesAWeightOfAnotherTypeAndStridedRows) {
  const Tensor x = random({4, 6, 16}, at::kBFloat16).transpose(0, 1);
  const Tensor weight = random({16}, at::kFloat);
  const auto [y, rstd] = composite::rms_norm_forward(x, weight, 1e-6);
  expect_like(y, rms_norm(x, weight, 1e-6), tolerance_of(at::kBFloat16), "y");
  const auto [dx, dweight] = composite::rms_norm_backward(y, x, weight, rstd);
  EXPECT_EQ(dx.scalar_type(), at::kBFloat16);
  EXPECT_EQ(dweight.scalar_type(), at::kFloat);
}

TEST(CudaCompositeOps, TheSumAndItsNormAreThoseOfTheCpu) {
  for (const at::ScalarType type : kTypes) {
    const Tensor x = leaf({3, 7, 40}, type), residual = leaf({3, 7, 40}, type);
    const Tensor weight = leaf({40}, type);
    const AddedNorm both = add_rms_norm(x, residual, weight, 1e-5);
    const Tensor dy = random(x.sizes(), type), dsum = random(x.sizes(), type);
    const Tensors own =
        torch::autograd::grad({both.normalized, both.sum}, {x, residual, weight}, {dy, dsum});
    at::NoGradGuard no_grad;
    const auto [sum, y, rstd] = composite::add_rms_norm_forward(x, residual, weight, 1e-5);
    const auto [dx, dweight] = composite::add_rms_norm_backward(dy, dsum, sum, weight, rstd);
    EXPECT_TRUE(sum.equal(both.sum));
    expect_like(y, both.normalized, tolerance_of(type), "y");
    expect_like(dx, own[0], tolerance_of(type), "dx");
    expect_like(dx, own[1], tolerance_of(type), "dresidual");
    expect_like(dweight, own[2], tolerance_of(type), "dweight");
  }
}

TEST(CudaCompositeOps, SwigluIsThatOfTheCpu) {
  for (const at::ScalarType type : kTypes) {
    const Tensor gate = leaf({5, 33}, type), up = leaf({5, 33}, type);
    const Tensor out = swiglu(gate, up), dout = random(out.sizes(), type);
    const Tensors own = torch::autograd::grad({out}, {gate, up}, {dout});
    at::NoGradGuard no_grad;
    expect_like(composite::swiglu_forward(gate, up), out, tolerance_of(type), "out");
    const auto [dgate, dup] = composite::swiglu_backward(dout, gate, up);
    expect_like(dgate, own[0], tolerance_of(type), "dgate");
    expect_like(dup, own[1], tolerance_of(type), "dup");
  }
}

TEST(CudaCompositeOps, RopeIsThatOfTheCpuBothWays) {
  for (const at::ScalarType type : kTypes) {
    const at::ScalarType wide = type == at::kDouble ? at::kDouble : at::kFloat;
    const Tensor angles = random({12, 8});
    const Tensor cos = angles.cos().to(wide), sin = angles.sin().to(wide);
    for (const bool with_positions : {false, true}) {
      const Tensor q = leaf({2, 9, 4, 16}, type), k = leaf({2, 9, 2, 16}, type);
      const Tensor positions = with_positions ? random_ids(12, {2, 9}) : Tensor();
      const auto optional = with_positions ? std::optional(positions) : std::nullopt;
      const auto [q_own, k_own] = rope(q, k, cos, sin, positions);
      const Tensor dq = random(q.sizes(), type), dk = random(k.sizes(), type);
      const Tensors own = torch::autograd::grad({q_own, k_own}, {q, k}, {dq, dk});
      at::NoGradGuard no_grad;
      const auto [q_out, k_out] = composite::rope_rotate(q, k, cos, sin, optional, false);
      const auto [q_back, k_back] = composite::rope_rotate(dq, dk, cos, sin, optional, true);
      expect_like(q_out, q_own, tolerance_of(type), "q");
      expect_like(k_out, k_own, tolerance_of(type), "k");
      expect_like(q_back, own[0], tolerance_of(type), "dq");
      expect_like(k_back, own[1], tolerance_of(type), "dk");
    }
  }
}

TEST(CudaCompositeOps, EmbeddingIsThatOfTheCpu) {
  for (const at::ScalarType type : kTypes) {
    const Tensor weight = leaf({11, 6}, type), tokens = random_ids(5, {4, 9});
    const Tensor out = embedding(weight, tokens), dout = random(out.sizes(), type);
    const Tensor own = torch::autograd::grad({out}, {weight}, {dout})[0];
    at::NoGradGuard no_grad;
    EXPECT_TRUE(composite::embedding_forward(weight, tokens).equal(out));
    expect_like(composite::embedding_backward(dout, tokens, 11), own, tolerance_of(type),
                "dweight");
  }
}

TEST(CudaCompositeOps, LinearCrossEntropyIsThatOfTheCpu) {
  for (const at::ScalarType type : kTypes) {
    const Tensor x = leaf({37, 12}, type), weight = leaf({50, 12}, type);
    const Tensor labels = random_ids(50, {37});
    labels[3] = kIgnoredLabel;
    labels[36] = kIgnoredLabel;
    const Tensor loss = linear_cross_entropy(x, weight, labels);
    const Tensors own = torch::autograd::grad({loss}, {x, weight});
    at::NoGradGuard no_grad;
    const auto [sum, dx, dweight] = composite::linear_cross_entropy(x, weight, labels, true, true);
    expect_like(sum, loss, tolerance_of(type), "loss");
    expect_like(dx, own[0], tolerance_of(type), "dx");
    expect_like(dweight, own[1], tolerance_of(type), "dweight");
    EXPECT_EQ(dx[3].abs().max().item<double>(), 0) << "an ignored token has a gradient";
  }
}

// More logits than fit into one chunk: 256 MiB of fp32 are 671 rows of this vocabulary.
TEST(CudaCompositeOps, LinearCrossEntropyAddsItsChunksUp) {
  const Tensor x = random({1400, 2}, at::kFloat), weight = random({100'000, 2}, at::kFloat);
  const Tensor labels = random_ids(100'000, {1400});
  const auto [sum, dx, dweight] = composite::linear_cross_entropy(x, weight, labels, true, true);
  Tensor x_leaf = x.clone().requires_grad_(), weight_leaf = weight.clone().requires_grad_();
  const Tensor loss = linear_cross_entropy(x_leaf, weight_leaf, labels);
  const Tensors own = torch::autograd::grad({loss}, {x_leaf, weight_leaf});
  expect_like(sum, loss, 1e-6, "loss");
  expect_like(dx, own[0], 1e-5, "dx");
  expect_like(dweight, own[1], 1e-5, "dweight");
}

TEST(CudaCompositeOps, LinearCrossEntropyComputesOnlyTheGradientsThatAreAsked) {
  const Tensor x = random({8, 4}), weight = random({9, 4}), labels = random_ids(9, {8});
  const auto all = composite::linear_cross_entropy(x, weight, labels, true, true);
  const auto none = composite::linear_cross_entropy(x, weight, labels, false, false);
  const auto half = composite::linear_cross_entropy(x, weight, labels, false, true);
  EXPECT_TRUE(std::get<0>(none).equal(std::get<0>(all)));
  EXPECT_FALSE(std::get<1>(none).defined() || std::get<2>(none).defined());
  EXPECT_FALSE(std::get<1>(half).defined());
  EXPECT_TRUE(std::get<2>(half).equal(std::get<2>(all)));
  const auto empty = composite::linear_cross_entropy(x.narrow(0, 0, 0), weight,
                                                     labels.narrow(0, 0, 0), true, true);
  EXPECT_EQ(std::get<0>(empty).item<double>(), 0);
  EXPECT_EQ(std::get<2>(empty).abs().max().item<double>(), 0);
}

struct Shape {
  int64_t batch, heads, kv_heads, queries, keys, head_dim;
  bool causal;
};

/// Views of (B, S, heads, hd) storage, as in layers.
Tensor heads(int64_t batch, int64_t heads, int64_t length, int64_t dim, at::ScalarType type) {
  return random({batch, length, heads, dim}, type).transpose(1, 2);
}

TEST(CudaCompositeOps, AttentionIsThatOfTheCpu) {
  const Shape shapes[] = {
      {2, 4, 4, 9, 9, 16, true}, {2, 6, 2, 33, 33, 8, true}, {1, 4, 1, 5, 12, 7, false}};
  for (const at::ScalarType type : kTypes) {
    for (const Shape& s : shapes) {
      const Tensor q = heads(s.batch, s.heads, s.queries, s.head_dim, type);
      const Tensor k = heads(s.batch, s.kv_heads, s.keys, s.head_dim, type);
      const Tensor v = heads(s.batch, s.kv_heads, s.keys, s.head_dim, type);
      const Tensor dout = heads(s.batch, s.heads, s.queries, s.head_dim, type);
      const AttentionOptions options{.causal = s.causal, .scale = 0.3};
      const AttentionResult own = attention_forward(q, k, v, options);
      const AttentionGradients grads = attention_backward(dout, q, k, v, own, options);
      const auto [out, logsumexp] =
          composite::attention_forward(AttentionPath::math, q, k, v, s.causal, 0.3);
      const auto [dq, dk, dv] = composite::attention_backward(
          AttentionPath::math, dout, q, k, v, own.out, own.logsumexp, s.causal, 0.3);
      const double tolerance = 2 * tolerance_of(type);
      EXPECT_TRUE(out.transpose(1, 2).is_contiguous());
      EXPECT_LE(max_error(out, own.out.to(at::kDouble)), tolerance * 4) << "out";
      EXPECT_EQ(logsumexp.scalar_type(), own.logsumexp.scalar_type());
      EXPECT_LE(max_error(logsumexp, own.logsumexp.to(at::kDouble)), tolerance * 10);
      expect_like(dq, grads.q, tolerance * 2, "dq");
      expect_like(dk, grads.k, tolerance * 2, "dk");
      expect_like(dv, grads.v, tolerance * 2, "dv");
    }
  }
}

// 4100 queries and keys of 2 heads are 33 million scores: three blocks.
TEST(CudaCompositeOps, AttentionAddsItsBlocksOfQueriesUp) {
  const int64_t length = 4100;
  const Tensor q = heads(1, 2, length, 4, at::kDouble), k = heads(1, 1, length, 4, at::kDouble);
  const Tensor v = heads(1, 1, length, 4, at::kDouble), dout = heads(1, 2, length, 4, at::kDouble);
  const AttentionOptions options{.causal = true, .scale = 0.5};
  const AttentionResult own = attention_forward(q, k, v, options);
  const AttentionGradients grads = attention_backward(dout, q, k, v, own, options);
  const auto [out, logsumexp] =
      composite::attention_forward(AttentionPath::math, q, k, v, true, 0.5);
  const auto [dq, dk, dv] =
      composite::attention_backward(AttentionPath::math, dout, q, k, v, out, logsumexp, true, 0.5);
  expect_like(out, own.out, 1e-12, "out");
  expect_like(dq, grads.q, 1e-12, "dq");
  expect_like(dk, grads.k, 1e-12, "dk");
  expect_like(dv, grads.v, 1e-12, "dv");
}

// As in context parallelism: the softmax covers two blocks of keys, each backward sees one.
TEST(CudaCompositeOps, AttentionGradientsOfBlocksOfKeysAddUp) {
  const Tensor q = heads(2, 4, 6, 8, at::kDouble), k = heads(2, 2, 10, 8, at::kDouble);
  const Tensor v = heads(2, 2, 10, 8, at::kDouble), dout = heads(2, 4, 6, 8, at::kDouble);
  const auto path = AttentionPath::math;
  const auto [out, logsumexp] = composite::attention_forward(path, q, k, v, false, 0.4);
  const auto whole = composite::attention_backward(path, dout, q, k, v, out, logsumexp, false, 0.4);
  Tensor dq = at::zeros_like(q);
  for (const int64_t first : {0, 5}) {
    const auto part = composite::attention_backward(
        path, dout, q, k.narrow(2, first, 5), v.narrow(2, first, 5), out, logsumexp, false, 0.4);
    dq = dq + std::get<0>(part);
    EXPECT_TRUE(std::get<1>(part).allclose(std::get<1>(whole).narrow(2, first, 5), 1e-12, 1e-12));
    EXPECT_TRUE(std::get<2>(part).allclose(std::get<2>(whole).narrow(2, first, 5), 1e-12, 1e-12));
  }
  EXPECT_TRUE(dq.allclose(std::get<0>(whole), 1e-12, 1e-12));
}

TEST(CudaCompositeOps, AttentionOfNoQueriesIsEmpty) {
  const Tensor none = at::empty({2, 4, 0, 8}, at::kDouble), keys = random({2, 2, 3, 8});
  const auto [out, logsumexp] =
      composite::attention_forward(AttentionPath::flash, none, keys, keys, false, 1);
  const auto [dq, dk, dv] = composite::attention_backward(AttentionPath::flash, none, none, keys,
                                                          keys, out, logsumexp, false, 1);
  EXPECT_EQ(out.sizes(), none.sizes());
  EXPECT_EQ(logsumexp.sizes(), at::IntArrayRef({2, 4, 0}));
  EXPECT_EQ(dq.numel(), 0);
  EXPECT_EQ(dk.abs().max().item<double>() + dv.abs().max().item<double>(), 0);
}

}  // namespace
}  // namespace titan::ops::testing
