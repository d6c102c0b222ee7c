// Attention by ATen's fused kernels, or by matrix products over blocks of queries.
#include <algorithm>
#include <limits>
#include <sstream>

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_backward.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <titan/log.h>

#include "composite_ops.h"

namespace titan::composite {
namespace {

/// Most scores that the math path holds at a time.
constexpr int64_t kScores = int64_t{1} << 24;
/// The memory-efficient kernel reads logsumexp in rows of a multiple of this many queries.
constexpr int64_t kPaddedQueries = 32;

Tensor with_contiguous_heads(const Tensor& x) {
  return x.stride(3) == 1 ? x : x.contiguous();
}

/// (B, heads, S, hd) over (B, S, heads, hd) storage, as titan/ops promises.
Tensor by_tokens(const Tensor& x) {
  return x.transpose(1, 2).contiguous().transpose(1, 2);
}

Tensor zeros_by_tokens(const Tensor& x) {
  return at::zeros({x.size(0), x.size(2), x.size(1), x.size(3)}, x.options()).transpose(1, 2);
}

/// (B, KV, Skv, hd) -> (B, KV · shared, Skv, hd): each key head once per query head.
Tensor repeated(const Tensor& x, int64_t shared) {
  if (shared == 1) return with_contiguous_heads(x);
  return x.unsqueeze(2)
      .expand({x.size(0), x.size(1), shared, x.size(2), x.size(3)})
      .reshape({x.size(0), x.size(1) * shared, x.size(2), x.size(3)});
}

/// The gradient of `repeated`.
Tensor folded(const Tensor& grad, int64_t shared) {
  if (shared == 1) return grad;
  return grad.unflatten(1, {grad.size(1) / shared, shared})
      .sum(2, /*keepdim=*/false, wide_type(grad))
      .to(grad.scalar_type());
}

// Note [Attention by cuDNN]
//
// Lengths. cuDNN makes a plan for every new shape, which takes tenths of a second. Therefore flash
// computes short sequences and sequences that grow by a token at a time. If a length is not a
// multiple of 128, cuDNN 9.19 on Hopper can return NaN for gradients of very negative scores,
// because it scores the rest of the last block of keys with 0.
// the rest of the last block of keys with 0.
//
// Strides. LibTorch's plan cache is keyed by the shapes and strides of q, k and v only. A plan also
// depends on the strides of out and its gradient, so these are always laid out by tokens.
//
// Refusals. cuDNN reports that it has no plan before it starts any work. Flash returns the same
// logsumexp, so the backward of one can follow the forward of the other.
constexpr int64_t kCudnnAlignment = 16;  // bytes of a head's address and strides
constexpr int64_t kCudnnLengthUnit = 128, kShortestForCudnn = 512;
constexpr int64_t kCudnnHeadUnit = 8, kNarrowestCudnnHead = 64, kWidestCudnnHead = 128;

/// x itself if cuDNN can read its layout, otherwise a copy.
Tensor readable_by_cudnn(const Tensor& x) {
  const int64_t size = static_cast<int64_t>(x.element_size());
  bool is_readable =
      x.stride(3) == 1 && reinterpret_cast<uintptr_t>(x.const_data_ptr()) % kCudnnAlignment == 0;
  for (const int64_t dim : {0, 1, 2})
    if (x.size(dim) > 1)
      is_readable &= x.stride(dim) > 0 && x.stride(dim) * size % kCudnnAlignment == 0;
  if (is_readable) return x;
  return x.transpose(1, 2).clone(at::MemoryFormat::Contiguous).transpose(1, 2);
}

std::tuple<Tensor, Tensor> cudnn_forward(const Tensor& q, const Tensor& k, const Tensor& v,
                                         bool causal, double scale) {
  const auto result = at::_scaled_dot_product_cudnn_attention(
      readable_by_cudnn(q), readable_by_cudnn(k), readable_by_cudnn(v), /*attn_bias=*/std::nullopt,
      /*compute_log_sumexp=*/true, /*dropout_p=*/0.0, causal, /*return_debug_mask=*/false, scale);
  // logsumexp is (B, H, S, 1)
  return {by_tokens(std::get<0>(result)), std::get<1>(result).reshape(q.sizes().slice(0, 3))};
}

std::tuple<Tensor, Tensor, Tensor> cudnn_backward(const Tensor& dout, const Tensor& q,
                                                  const Tensor& k, const Tensor& v,
                                                  const Tensor& out, const Tensor& logsumexp,
                                                  bool causal, double scale) {
  // without dropout the generator state is unused, but the operation requires tensors for it
  const Tensor no_random = at::empty({}, q.options().dtype(at::kLong));
  const auto [dq, dk, dv] = at::_scaled_dot_product_cudnn_attention_backward(
      by_tokens(readable_by_cudnn(dout)), readable_by_cudnn(q), readable_by_cudnn(k),
      readable_by_cudnn(v), by_tokens(readable_by_cudnn(out)), logsumexp.contiguous().unsqueeze(-1),
      no_random, no_random, /*attn_bias=*/Tensor(), /*cum_seq_q=*/Tensor(), /*cum_seq_k=*/Tensor(),
      q.size(2), k.size(2), /*dropout_p=*/0.0, causal, scale);
  return {by_tokens(dq), by_tokens(dk), by_tokens(dv)};
}

/// The result of `compute`, or nothing if cuDNN refuses now or has refused before.
template <class Compute>
auto unless_refused(const Tensor& q, const Tensor& k, const Compute& compute)
    -> std::optional<decltype(compute())> {
  if (cudnn_has_refused()) return std::nullopt;
  try {
    return compute();
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::AcceleratorError&) {
    throw;  // from an earlier operation
  } catch (const c10::Error& error) {
    if (!cudnn_has_refused().exchange(true)) {
      std::ostringstream message;
      message << "cuDNN refused attention of queries " << q.sizes() << " and keys " << k.sizes()
              << " (" << error.what_without_backtrace()
              << "); flash attention is used for the rest of the run";
      log::warn(message.str());
    }
    return std::nullopt;
  }
}

// Blocks of queries: the query heads of one key head are stacked, so a block of b queries is a
// matrix of shared · b rows against the keys of that head.
struct Blocks {
  Blocks(const Tensor& q, const Tensor& k, bool is_causal)
      : batch(q.size(0)),
        kv_heads(k.size(1)),
        shared(q.size(1) / k.size(1)),
        queries(q.size(2)),
        keys(k.size(2)),
        causal(is_causal),
        step(std::max<int64_t>(1, kScores / std::max<int64_t>(1, batch * q.size(1) * keys))) {}

  /// Queries first ... first + rows - 1 of x (B, H, S, ...) as (B, KV, shared, rows, ...).
  Tensor of(const Tensor& x, int64_t first, int64_t rows) const {
    return x.narrow(2, first, rows).unflatten(1, {kv_heads, shared});
  }
  /// scale · q kᵀ of a block, masked: (B, KV, shared, rows, Skv).
  Tensor scores(const Tensor& q, const Tensor& k, int64_t first, int64_t rows, double scale) const {
    Tensor s = at::matmul(of(q, first, rows), k.unsqueeze(2).transpose(-1, -2)).mul_(scale);
    if (causal) {
      const Tensor key = at::arange(keys, s.options().dtype(at::kLong));
      const Tensor query = at::arange(first, first + rows, s.options().dtype(at::kLong));
      s.masked_fill_(key.unsqueeze(0) > query.unsqueeze(1),
                     -std::numeric_limits<double>::infinity());
    }
    return s;
  }

  int64_t batch, kv_heads, shared, queries, keys;
  bool causal;
  int64_t step;
};

std::tuple<Tensor, Tensor> math_forward(const Tensor& q_in, const Tensor& k_in, const Tensor& v_in,
                                        bool causal, double scale) {
  const at::ScalarType wide = wide_type(q_in);
  const Tensor q = q_in.to(wide), k = k_in.to(wide), v = v_in.to(wide);
  const Blocks blocks(q, k, causal);
  const Tensor out = zeros_by_tokens(q);
  const Tensor logsumexp = at::empty(q.sizes().slice(0, 3), q.options());
  for (int64_t first = 0; first < blocks.queries; first += blocks.step) {
    const int64_t rows = std::min(blocks.step, blocks.queries - first);
    const Tensor scores = blocks.scores(q, k, first, rows, scale);
    const Tensor lse = scores.logsumexp(-1, /*keepdim=*/true);
    const Tensor weights = (scores - lse).exp_();
    blocks.of(out, first, rows).copy_(at::matmul(weights, v.unsqueeze(2)));
    blocks.of(logsumexp, first, rows).copy_(lse.squeeze(-1));
  }
  return {by_tokens(out.to(q_in.scalar_type())), logsumexp};
}

std::tuple<Tensor, Tensor, Tensor> math_backward(const Tensor& dout_in, const Tensor& q_in,
                                                 const Tensor& k_in, const Tensor& v_in,
                                                 const Tensor& out_in, const Tensor& logsumexp,
                                                 bool causal, double scale) {
  const at::ScalarType type = q_in.scalar_type(), wide = wide_type(q_in);
  const Tensor q = q_in.to(wide), k = k_in.to(wide), v = v_in.to(wide);
  const Tensor dout = dout_in.to(wide), out = out_in.to(wide);
  const Blocks blocks(q, k, causal);
  const Tensor dq = zeros_by_tokens(q);
  Tensor dk = zeros_by_tokens(k), dv = zeros_by_tokens(v);
  const Tensor delta = (dout * out).sum(-1, /*keepdim=*/true);
  const Tensor lse = logsumexp.unsqueeze(-1);
  for (int64_t first = 0; first < blocks.queries; first += blocks.step) {
    const int64_t rows = std::min(blocks.step, blocks.queries - first);
    const Tensor d = blocks.of(dout, first, rows);
    const Tensor weights =
        (blocks.scores(q, k, first, rows, scale) - blocks.of(lse, first, rows)).exp_();
    const Tensor dweights = at::matmul(d, v.unsqueeze(2).transpose(-1, -2));
    const Tensor dscores = (dweights - blocks.of(delta, first, rows)).mul_(weights).mul_(scale);
    blocks.of(dq, first, rows).copy_(at::matmul(dscores, k.unsqueeze(2)));
    dv.add_(at::matmul(weights.transpose(-1, -2), d).sum(2));
    dk.add_(at::matmul(dscores.transpose(-1, -2), blocks.of(q, first, rows)).sum(2));
  }
  return {by_tokens(dq.to(type)), by_tokens(dk.to(type)), by_tokens(dv.to(type))};
}

}  // namespace

std::atomic<bool>& cudnn_has_refused() {
  static std::atomic<bool> has_refused = false;
  return has_refused;
}

bool suits_cudnn(const Tensor& q, const Tensor& k) {
  const auto suits = [](int64_t length) {
    return length >= kShortestForCudnn && length % kCudnnLengthUnit == 0;
  };
  const int64_t head_dim = q.size(3);
  return (q.scalar_type() == at::kHalf || q.scalar_type() == at::kBFloat16) &&
         head_dim >= kNarrowestCudnnHead && head_dim <= kWidestCudnnHead &&
         head_dim % kCudnnHeadUnit == 0 && suits(q.size(2)) && suits(k.size(2)) &&
         !at::globalContext().deterministicAlgorithms() && !cudnn_has_refused();
}

std::tuple<Tensor, Tensor> attention_forward(AttentionPath path, const Tensor& q_in,
                                             const Tensor& k_in, const Tensor& v_in, bool causal,
                                             double scale) {
  if (q_in.numel() == 0)
    return {zeros_by_tokens(q_in),
            at::zeros(q_in.sizes().slice(0, 3), q_in.options().dtype(wide_type(q_in)))};
  if (path == AttentionPath::math) return math_forward(q_in, k_in, v_in, causal, scale);

  if (path == AttentionPath::cudnn)
    if (const auto result = unless_refused(
            q_in, k_in, [&] { return cudnn_forward(q_in, k_in, v_in, causal, scale); }))
      return *result;

  const Tensor q = with_contiguous_heads(q_in);
  if (path == AttentionPath::flash || path == AttentionPath::cudnn) {
    const auto result = at::_scaled_dot_product_flash_attention(
        q, with_contiguous_heads(k_in), with_contiguous_heads(v_in), /*dropout_p=*/0.0, causal,
        /*return_debug_mask=*/false, scale);
    return {by_tokens(std::get<0>(result)), std::get<1>(result)};
  }
  const int64_t shared = q.size(1) / k_in.size(1);
  const auto result = at::_scaled_dot_product_efficient_attention(
      q, repeated(k_in, shared), repeated(v_in, shared), /*attn_bias=*/std::nullopt,
      /*compute_log_sumexp=*/true, /*dropout_p=*/0.0, causal, scale);
  return {by_tokens(std::get<0>(result)), std::get<1>(result).narrow(2, 0, q.size(2)).contiguous()};
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(AttentionPath path, const Tensor& dout_in,
                                                      const Tensor& q_in, const Tensor& k_in,
                                                      const Tensor& v_in, const Tensor& out_in,
                                                      const Tensor& logsumexp, bool causal,
                                                      double scale) {
  if (q_in.numel() == 0)
    return {zeros_by_tokens(q_in), zeros_by_tokens(k_in), zeros_by_tokens(v_in)};
  if (path == AttentionPath::math)
    return math_backward(dout_in, q_in, k_in, v_in, out_in, logsumexp, causal, scale);

  if (path == AttentionPath::cudnn)
    if (const auto grads = unless_refused(q_in, k_in, [&] {
          return cudnn_backward(dout_in, q_in, k_in, v_in, out_in, logsumexp, causal, scale);
        }))
      return *grads;

  const Tensor q = with_contiguous_heads(q_in), dout = with_contiguous_heads(dout_in);
  const Tensor out = by_tokens(out_in);  // the kernels assume these strides
  // without dropout the generator state is unused, but the operations require tensors for it
  const Tensor no_random = at::empty({2}, q.options().dtype(at::kLong));
  if (path == AttentionPath::flash || path == AttentionPath::cudnn) {
    const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_backward(
        dout, q, with_contiguous_heads(k_in), with_contiguous_heads(v_in), out,
        logsumexp.contiguous(), /*cum_seq_q=*/Tensor(), /*cum_seq_k=*/Tensor(), q.size(2),
        k_in.size(2), /*dropout_p=*/0.0, causal, no_random, no_random, scale);
    return {by_tokens(dq), by_tokens(dk), by_tokens(dv)};
  }
  const int64_t shared = q.size(1) / k_in.size(1);
  const int64_t padding = (kPaddedQueries - q.size(2) % kPaddedQueries) % kPaddedQueries;
  const Tensor padded = at::constant_pad_nd(logsumexp.contiguous(), {0, padding},
                                            std::numeric_limits<double>::infinity());
  const auto [dq, dk, dv, dbias] = at::_scaled_dot_product_efficient_attention_backward(
      dout, q, repeated(k_in, shared), repeated(v_in, shared), /*attn_bias=*/Tensor(), out, padded,
      no_random, no_random, /*dropout_p=*/0.0, {true, true, true, false}, causal, scale);
  return {by_tokens(dq), by_tokens(folded(dk, shared)), by_tokens(folded(dv, shared))};
}

}  // namespace titan::composite
