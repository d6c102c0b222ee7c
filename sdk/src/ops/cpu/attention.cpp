// attention on the CPU: fp32 by our own blocked loops, everything else by ATen's flash kernel. Both
// read any layout with contiguous heads, share key heads themselves and never hold the matrix of
// scores.
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "../kernels/kernels.h"
#include "../signatures.h"

namespace titan::ops::cpu {
namespace {

Tensor with_contiguous_heads(const Tensor& x) {
  return x.stride(3) == 1 ? x : x.contiguous();
}

/// (B, heads, S, hd) over (B, S, heads, hd) storage.
Tensor zeros_like_heads(const Tensor& x) {
  return at::zeros({x.size(0), x.size(2), x.size(1), x.size(3)}, x.options()).transpose(1, 2);
}

/// Widest head that our loops take: beyond it a block of keys leaves the first-level caches.
constexpr int64_t kWidestHead = 128;

bool has_own_kernel(const Tensor& q) {
  return q.scalar_type() == at::kFloat && q.size(3) <= kWidestHead &&
         q.size(3) % kernels().attention_lanes == 0;
}

/// Head (b, h) of a (B, heads, S, hd) tensor.
HeadRows rows_of(const Tensor& x, int64_t b, int64_t h) {
  return {x.const_data_ptr<float>() + b * x.stride(0) + h * x.stride(1), x.stride(2)};
}
float* mutable_rows_of(const Tensor& x, int64_t b, int64_t h) {
  return x.mutable_data_ptr<float>() + b * x.stride(0) + h * x.stride(1);
}

/// Query head h of row b with the key head it shares.
AttentionHead head_of(const Tensor& q, const Tensor& k, const Tensor& v, int64_t b, int64_t h,
                      bool causal, double scale) {
  const int64_t kv = h / (q.size(1) / k.size(1));
  return {.q = rows_of(q, b, h),
          .k = rows_of(k, b, kv),
          .v = rows_of(v, b, kv),
          .num_queries = q.size(2),
          .num_keys = k.size(2),
          .dim = q.size(3),
          .scale = static_cast<float>(scale),
          .causal = causal};
}

std::tuple<Tensor, Tensor> own_forward(const Tensor& q, const Tensor& k, const Tensor& v,
                                       bool causal, double scale) {
  const int64_t batch = q.size(0), heads = q.size(1), num_queries = q.size(2), dim = q.size(3);
  const Tensor out = at::empty({batch, num_queries, heads, dim}, q.options()).transpose(1, 2);
  const Tensor logsumexp = at::empty({batch, heads, num_queries}, q.options());
  float* lse = logsumexp.mutable_data_ptr<float>();
  const int64_t block = kernels().attention_query_block;
  const int64_t num_blocks = (num_queries + block - 1) / block;
  // the last blocks of a causal row cost most: consecutive tasks go through the heads, so that
  // threads share the load
  at::parallel_for(0, batch * heads * num_blocks, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> scratch(static_cast<size_t>(kernels().attention_scratch(dim)));
    for (int64_t task = begin; task < end; ++task) {
      const int64_t head = task / num_blocks, first = task % num_blocks * block;
      const int64_t b = head / heads, h = head % heads;
      kernels().attention_forward(head_of(q, k, v, b, h, causal, scale), first,
                                  std::min(block, num_queries - first),
                                  mutable_rows_of(out, b, h) + first * out.stride(2), out.stride(2),
                                  lse + head * num_queries + first, scratch.data());
    }
  });
  return {out, logsumexp};
}

std::tuple<Tensor, Tensor, Tensor> own_backward(const Tensor& dout, const Tensor& q,
                                                const Tensor& k, const Tensor& v, const Tensor& out,
                                                const Tensor& logsumexp, bool causal,
                                                double scale) {
  const Tensor dq = zeros_like_heads(q), dk = zeros_like_heads(k), dv = zeros_like_heads(v);
  const int64_t heads = q.size(1), kv_heads = k.size(1), shared = heads / kv_heads;
  const float* lse = logsumexp.const_data_ptr<float>();
  // one task per key head adds up the gradients of its queries in order: the sum does not depend on
  // the threads
  at::parallel_for(0, q.size(0) * kv_heads, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> scratch(static_cast<size_t>(kernels().attention_scratch(q.size(3))));
    std::vector<float> delta(static_cast<size_t>(q.size(2)));
    for (int64_t task = begin; task < end; ++task) {
      const int64_t b = task / kv_heads, kv = task % kv_heads;
      for (int64_t h = kv * shared; h < (kv + 1) * shared; ++h)
        kernels().attention_backward(head_of(q, k, v, b, h, causal, scale), rows_of(dout, b, h),
                                     rows_of(out, b, h), lse + (b * heads + h) * q.size(2),
                                     mutable_rows_of(dq, b, h), dq.stride(2),
                                     mutable_rows_of(dk, b, kv), mutable_rows_of(dv, b, kv),
                                     dk.stride(2), delta.data(), scratch.data());
    }
  });
  return {dq, dk, dv};
}

}  // namespace

std::tuple<Tensor, Tensor> attention_forward(const Tensor& q_in, const Tensor& k_in,
                                             const Tensor& v_in, bool causal, double scale) {
  if (q_in.numel() == 0) {
    const at::ScalarType type = q_in.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    return {zeros_like_heads(q_in),
            at::zeros(q_in.sizes().slice(0, 3), q_in.options().dtype(type))};
  }
  const Tensor q = with_contiguous_heads(q_in), k = with_contiguous_heads(k_in),
               v = with_contiguous_heads(v_in);
  if (has_own_kernel(q)) return own_forward(q, k, v, causal, scale);
  return at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, /*dropout_p=*/0, causal,
                                                         /*attn_mask=*/std::nullopt, scale);
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& dout_in, const Tensor& q_in,
                                                      const Tensor& k_in, const Tensor& v_in,
                                                      const Tensor& out_in, const Tensor& logsumexp,
                                                      bool causal, double scale) {
  if (q_in.numel() == 0)
    return {zeros_like_heads(q_in), zeros_like_heads(k_in), zeros_like_heads(v_in)};
  const Tensor q = with_contiguous_heads(q_in), k = with_contiguous_heads(k_in),
               v = with_contiguous_heads(v_in);
  const Tensor dout = with_contiguous_heads(dout_in), out = with_contiguous_heads(out_in);
  if (has_own_kernel(q))
    return own_backward(dout, q, k, v, out, logsumexp.contiguous(), causal, scale);
  return at::_scaled_dot_product_flash_attention_for_cpu_backward(
      dout, q, k, v, out, logsumexp, /*dropout_p=*/0, causal, /*attn_mask=*/std::nullopt, scale);
}

}  // namespace titan::ops::cpu
