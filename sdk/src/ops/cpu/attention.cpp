// attention on the CPU: fp32 and bf16 by Titan's blocked loops, everything else by ATen's flash
// kernel. Both read any layout with contiguous heads, share key heads themselves and never hold the
// matrix of scores.
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/zeros.h>

#include "../signatures.h"
#include "own_attention.h"

namespace titan::ops::cpu {
namespace {

Tensor with_contiguous_heads(const Tensor& x) {
  return x.stride(3) == 1 ? x : x.contiguous();
}

/// (B, heads, S, hd) over (B, S, heads, hd) storage.
Tensor zeros_like_heads(const Tensor& x) {
  return at::zeros({x.size(0), x.size(2), x.size(1), x.size(3)}, x.options()).transpose(1, 2);
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
  if (has_own_attention(q, causal, scale))
    return own_attention_forward(kernels(), q, k, v, causal, scale);
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
  if (has_own_attention(q, causal, scale))
    return own_attention_backward(kernels(), dout, q, k, v, out, logsumexp.contiguous(), causal,
                                  scale);
  return at::_scaled_dot_product_flash_attention_for_cpu_backward(
      dout, q, k, v, out, logsumexp, /*dropout_p=*/0, causal, /*attn_mask=*/std::nullopt, scale);
}

}  // namespace titan::ops::cpu
