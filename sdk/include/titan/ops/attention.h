// Scaled dot-product attention without a score matrix in memory. Used by nn::Attention and by
// context parallelism.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>
#include <titan/export.h>

namespace titan::ops {

struct AttentionOptions {
  bool causal = true;           ///< query i sees keys 0 ... i; needs as many keys as queries
  std::optional<double> scale;  ///< factor on q·k; unset: 1 / sqrt(hd)
};

/// softmax(scale · q kᵀ) v. Vaswani et al., 2017; tiled as in Dao et al., 2022; grouped queries:
/// Ainslie et al., 2023.
///
/// q (B, H, S, hd), k (B, KV, Skv, hd), v (B, KV, Skv, hdv), one dtype; H a multiple of KV, query
/// head i reads key head i / (H/KV). Strided views of (B, S, H, hd) storage are read in place; if
/// hdv differs from hd, the narrower tensor is copied. Returns (B, H, S, hdv) such that
/// `out.transpose(1, 2)` is contiguous. Differentiable once in q, k, v; saves q, k, v, out and one
/// number per query. Throws a config Error for shapes that do not match.
TITAN_API at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                               const AttentionOptions& options = {});

struct AttentionResult {
  at::Tensor out;        ///< (B, H, S, hdv), `transpose(1, 2)` contiguous
  at::Tensor logsumexp;  ///< (B, H, S): log Σ exp(scale · q·k) per query, fp32 (double for double)
};

/// The forward only, outside of autograd: for callers that combine partial results over blocks of
/// keys.
TITAN_API AttentionResult attention_forward(const at::Tensor& q, const at::Tensor& k,
                                            const at::Tensor& v,
                                            const AttentionOptions& options = {});

/// Merges `further` into `into`, in place: `into` becomes the result over the keys of both. Both
/// may be views of larger tensors. Sums in the dtype of into.out.
TITAN_API void merge_attention(const AttentionResult& into, const AttentionResult& further);

struct AttentionGradients {
  at::Tensor q, k, v;  ///< shapes and dtypes of their inputs, `transpose(1, 2)` contiguous
};

/// The backward only. `result` may be a softmax over more keys than k and v hold. The gradients are
/// then this block's contribution; the contributions of all blocks add up to the whole.
TITAN_API AttentionGradients attention_backward(const at::Tensor& grad_out, const at::Tensor& q,
                                                const at::Tensor& k, const at::Tensor& v,
                                                const AttentionResult& result,
                                                const AttentionOptions& options = {});

}  // namespace titan::ops
