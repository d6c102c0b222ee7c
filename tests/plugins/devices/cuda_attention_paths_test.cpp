// Attention on a GPU with cuDNN, and with flash where cuDNN refuses. Runs on the CPU with stand-ins
// for LibTorch's operations, written from their documentation, and compares with Titan's own
// attention.
#include <cmath>

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <titan/log.h>
#include <titan/ops/attention.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/library.h>

#include "plugins/devices/cuda/composite_ops.h"
#include "tests/sdk/ops/ops_testing.h"

namespace titan::ops::testing {
namespace {

using composite::AttentionPath;

struct PathShape {
  int64_t batch, heads, kv_heads, queries, keys, head_dim;
  bool causal;
};

/// Views of (B, S, heads, hd) storage, as in layers.
Tensor layer_heads(int64_t batch, int64_t heads, int64_t length, int64_t dim, at::ScalarType type) {
  return random({batch, length, heads, dim}, type).transpose(1, 2);
}

// The operations of cuDNN and flash exist only on GPUs. These stand-ins compute softmax attention
// from their documentation on the CPU, and check the requirements of cuDNN.
enum class Cudnn { works, refuses, lacks_memory };
Cudnn cudnn_state = Cudnn::works;
int num_cudnn_calls = 0, num_flash_calls = 0;

struct Attended {
  Tensor out, logsumexp;
};

Attended attend(const Tensor& q, const Tensor& k, const Tensor& v, bool causal, double scale) {
  const int64_t shared = q.size(1) / k.size(1);
  Tensor scores = at::matmul(q, k.repeat_interleave(shared, 1).transpose(-1, -2)) * scale;
  if (causal) {
    const Tensor future = at::ones({q.size(2), k.size(2)}, at::kBool).triu(1);
    scores = scores.masked_fill(future, -INFINITY);
  }
  return {at::matmul(at::softmax(scores, -1), v.repeat_interleave(shared, 1)),
          at::logsumexp(scores, {-1})};
}

/// Gradients in the layouts of q, k and v.
std::tuple<Tensor, Tensor, Tensor> attend_backward(const Tensor& dout, const Tensor& q,
                                                   const Tensor& k, const Tensor& v, bool causal,
                                                   double scale) {
  const at::AutoGradMode with_graph(true);
  const c10::impl::ForceDispatchKeyGuard recorded(c10::default_included_set,
                                                  c10::default_excluded_set);
  const Tensors in = {q.detach().requires_grad_(), k.detach().requires_grad_(),
                      v.detach().requires_grad_()};
  const Tensor out = attend(in[0], in[1], in[2], causal, scale).out;
  const Tensors grads = torch::autograd::grad({out}, in, {dout});
  const auto like = [&](size_t i) { return at::empty_like(in[i].detach()).copy_(grads[i]); };
  return {like(0), like(1), like(2)};
}

void enter_cudnn(at::TensorList heads) {
  ++num_cudnn_calls;
  TORCH_CHECK(cudnn_state != Cudnn::refuses, "No execution plans support the graph");
  TORCH_CHECK_WITH(OutOfMemoryError, cudnn_state != Cudnn::lacks_memory, "no memory");
  for (const Tensor& x : heads) {
    EXPECT_EQ(x.stride(3), 1);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(x.const_data_ptr()) % 16, 0);
    for (const int64_t dim : {0, 1, 2}) {
      EXPECT_GT(x.stride(dim), 0);
      EXPECT_EQ(x.stride(dim) * x.element_size() % 16, 0);
    }
  }
}

using Forward =
    std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>;

Forward cudnn_stand_in(const Tensor& q, const Tensor& k, const Tensor& v,
                       const std::optional<Tensor>& bias, bool with_logsumexp, double dropout,
                       bool causal, bool, std::optional<double> scale) {
  enter_cudnn({q, k, v});
  EXPECT_TRUE(!bias && with_logsumexp && dropout == 0);
  const Attended a = attend(q, k, v, causal, *scale);
  const Tensor none = at::empty({}, at::kLong);
  return {at::empty_like(q).copy_(a.out),
          a.logsumexp.unsqueeze(-1),
          {},
          {},
          q.size(2),
          k.size(2),
          none,
          none,
          {}};
}

std::tuple<Tensor, Tensor, Tensor> cudnn_backward_stand_in(
    const Tensor& dout, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
    const Tensor& logsumexp, const Tensor& seed, const Tensor& offset, const Tensor& bias,
    const Tensor& begins_q, const Tensor& begins_k, c10::SymInt max_q, c10::SymInt max_k,
    double dropout, bool causal, std::optional<double> scale) {
  enter_cudnn({dout, q, k, v, out});
  EXPECT_TRUE(out.transpose(1, 2).is_contiguous() && dout.transpose(1, 2).is_contiguous());
  EXPECT_EQ(logsumexp.sizes(), at::IntArrayRef({q.size(0), q.size(1), q.size(2), 1}));
  EXPECT_TRUE(logsumexp.is_contiguous());
  EXPECT_TRUE(seed.defined() && offset.defined());
  EXPECT_FALSE(bias.defined() || begins_q.defined() || begins_k.defined());
  EXPECT_TRUE(max_q == q.size(2) && max_k == k.size(2) && dropout == 0);
  return attend_backward(dout, q, k, v, causal, *scale);
}

Forward dense_flash_stand_in(const Tensor& q, const Tensor& k, const Tensor& v, double, bool causal,
                             bool, std::optional<double> scale) {
  ++num_flash_calls;
  const Attended a = attend(q, k, v, causal, *scale);
  return {at::empty_like(q).copy_(a.out), a.logsumexp, {}, {}, q.size(2), k.size(2), {}, {}, {}};
}

std::tuple<Tensor, Tensor, Tensor> dense_flash_backward_stand_in(
    const Tensor& dout, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor&,
    const Tensor& logsumexp, const Tensor&, const Tensor&, c10::SymInt, c10::SymInt, double,
    bool causal, const Tensor&, const Tensor&, std::optional<double> scale) {
  ++num_flash_calls;
  EXPECT_EQ(logsumexp.sizes(), q.sizes().slice(0, 3));
  return attend_backward(dout, q, k, v, causal, *scale);
}

TORCH_LIBRARY_IMPL(aten, CPU, m) {
  m.impl("_scaled_dot_product_cudnn_attention", TORCH_FN(cudnn_stand_in));
  m.impl("_scaled_dot_product_cudnn_attention_backward", TORCH_FN(cudnn_backward_stand_in));
  m.impl("_scaled_dot_product_flash_attention", TORCH_FN(dense_flash_stand_in));
  m.impl("_scaled_dot_product_flash_attention_backward", TORCH_FN(dense_flash_backward_stand_in));
}

class CudaAttentionPaths : public ::testing::Test {
 protected:
  void SetUp() override { reset(); }
  void TearDown() override { reset(); }

 private:
  static void reset() {
    cudnn_state = Cudnn::works;
    num_cudnn_calls = num_flash_calls = 0;
    composite::cudnn_has_refused() = false;
    at::globalContext().setDeterministicAlgorithms(false, false);
  }
};

/// Forward and backward by `path`, compared with the CPU's.
void expect_as_on_the_cpu(AttentionPath path, const Tensor& q, const Tensor& k, const Tensor& v,
                          const Tensor& dout, bool causal) {
  const at::NoGradGuard no_grad;
  const AttentionOptions options{.causal = causal, .scale = 0.3};
  const AttentionResult own = attention_forward(q, k, v, options);
  const AttentionGradients grads = attention_backward(dout, q, k, v, own, options);
  const auto [out, logsumexp] = composite::attention_forward(path, q, k, v, causal, 0.3);
  const auto [dq, dk, dv] =
      composite::attention_backward(path, dout, q, k, v, out, logsumexp, causal, 0.3);
  EXPECT_TRUE(logsumexp.is_contiguous());
  EXPECT_LE(max_error(logsumexp, own.logsumexp), 1e-12);
  const Tensors found = {out, dq, dk, dv}, expected = {own.out, grads.q, grads.k, grads.v};
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(found[i].transpose(1, 2).is_contiguous()) << i;
    EXPECT_LE(max_error(found[i], expected[i]), 1e-12) << i;
  }
}

TEST_F(CudaAttentionPaths, AreThoseOfTheCpu) {
  for (const AttentionPath path : {AttentionPath::cudnn, AttentionPath::flash})
    for (const PathShape& s :
         {PathShape{2, 4, 4, 9, 9, 16, true}, PathShape{2, 6, 2, 33, 33, 8, true},
          PathShape{1, 4, 1, 5, 12, 8, false}}) {
      const auto some = [&](int64_t count, int64_t length) {
        return layer_heads(s.batch, count, length, s.head_dim, at::kDouble);
      };
      expect_as_on_the_cpu(path, some(s.heads, s.queries), some(s.kv_heads, s.keys),
                           some(s.kv_heads, s.keys), some(s.heads, s.queries), s.causal);
    }
  EXPECT_EQ(num_cudnn_calls, 6);
  EXPECT_EQ(num_flash_calls, 6);
}

// Inputs of layers: slices of a packed projection, a gradient expanded from one number, and heads
// in the layout of other models. Only the odd address occurs in no layer.
TEST_F(CudaAttentionPaths, CopyWhatCudnnCannotReadInPlace) {
  const Tensor packed = random({2, 9, 8 * 16}).view({2, 9, 8, 16}).transpose(1, 2);
  const Tensor q = packed.narrow(1, 0, 4), k = packed.narrow(1, 4, 2), v = packed.narrow(1, 6, 2);
  expect_as_on_the_cpu(AttentionPath::cudnn, q, k, v, random({}).expand_as(q), true);
  expect_as_on_the_cpu(AttentionPath::cudnn, q.contiguous(), k.contiguous(), v.contiguous(),
                       random({2, 4, 16, 9}).transpose(2, 3), true);
  const Tensor odd = random({2 * 9 * 4 * 16 + 1}).narrow(0, 1, 2 * 9 * 4 * 16);
  expect_as_on_the_cpu(AttentionPath::cudnn, odd.view({2, 9, 4, 16}).transpose(1, 2), k, v,
                       random({2, 4, 9, 16}), true);
  EXPECT_EQ(num_cudnn_calls, 6);
}

TEST_F(CudaAttentionPaths, StayWithFlashOnceCudnnRefused) {
  const Tensor q = layer_heads(2, 4, 9, 16, at::kDouble), k = layer_heads(2, 2, 9, 16, at::kDouble);
  cudnn_state = Cudnn::refuses;
  const log::Quiet quiet;
  expect_as_on_the_cpu(AttentionPath::cudnn, q, k, k, q, true);
  EXPECT_TRUE(composite::cudnn_has_refused());
  cudnn_state = Cudnn::works;
  expect_as_on_the_cpu(AttentionPath::cudnn, q, k, k, q, true);
  EXPECT_EQ(num_cudnn_calls, 1);
  EXPECT_EQ(num_flash_calls, 4);
}

TEST_F(CudaAttentionPaths, GoOnByFlashWhereCudnnRefusesTheBackward) {
  const Tensor q = layer_heads(2, 4, 9, 16, at::kDouble), k = layer_heads(2, 2, 9, 16, at::kDouble);
  const auto [out, logsumexp] =
      composite::attention_forward(AttentionPath::cudnn, q, k, k, true, 0.3);
  const auto expected =
      composite::attention_backward(AttentionPath::cudnn, q, q, k, k, out, logsumexp, true, 0.3);
  cudnn_state = Cudnn::refuses;
  const log::Quiet quiet;
  const auto grads =
      composite::attention_backward(AttentionPath::cudnn, q, q, k, k, out, logsumexp, true, 0.3);
  EXPECT_EQ(num_flash_calls, 1);
  EXPECT_TRUE(std::get<0>(grads).equal(std::get<0>(expected)));
  EXPECT_TRUE(std::get<1>(grads).equal(std::get<1>(expected)));
}

TEST_F(CudaAttentionPaths, DoNotTakeALackOfMemoryForARefusal) {
  const Tensor q = layer_heads(2, 4, 9, 16, at::kDouble);
  cudnn_state = Cudnn::lacks_memory;
  EXPECT_THROW(composite::attention_forward(AttentionPath::cudnn, q, q, q, true, 0.3),
               c10::OutOfMemoryError);
  EXPECT_FALSE(composite::cudnn_has_refused());
  EXPECT_EQ(num_flash_calls, 0);
}

TEST_F(CudaAttentionPaths, GiveCudnnLongSequencesOfWholeBlocks) {
  const auto suits = [](int64_t queries, int64_t keys, int64_t head_dim, at::ScalarType type) {
    return composite::suits_cudnn(at::empty({1, 8, queries, head_dim}, type),
                                  at::empty({1, 2, keys, head_dim}, type));
  };
  EXPECT_TRUE(suits(4096, 4096, 128, at::kBFloat16));
  EXPECT_TRUE(suits(512, 1024, 64, at::kHalf));
  EXPECT_FALSE(suits(384, 384, 128, at::kBFloat16));
  EXPECT_FALSE(suits(1, 4096, 128, at::kBFloat16));
  EXPECT_FALSE(suits(1025, 1025, 128, at::kBFloat16));
  EXPECT_FALSE(suits(1024, 1088, 128, at::kBFloat16));
  EXPECT_FALSE(suits(1024, 1024, 192, at::kBFloat16));
  EXPECT_FALSE(suits(1024, 1024, 68, at::kBFloat16));
  EXPECT_FALSE(suits(1024, 1024, 32, at::kBFloat16));
  EXPECT_FALSE(suits(1024, 1024, 128, at::kFloat));
  at::globalContext().setDeterministicAlgorithms(true, false);
  EXPECT_FALSE(suits(4096, 4096, 128, at::kBFloat16));
  at::globalContext().setDeterministicAlgorithms(false, false);
  composite::cudnn_has_refused() = true;
  EXPECT_FALSE(suits(4096, 4096, 128, at::kBFloat16));
}

}  // namespace
}  // namespace titan::ops::testing
