// Rotary position embedding of queries and keys in one pass. Used by nn::Attention.
#pragma once

#include <utility>

#include <ATen/core/Tensor.h>
#include <titan/export.h>

namespace titan::ops {

/// Rotates queries and keys by the angles of their positions. Su et al., 2021; Hugging Face's
/// half-split layout: components j and j + hd/2 of a head form the pair (a, b) -> (a·cos − b·sin,
/// b·cos + a·sin).
///
/// q (B, S, H, hd), k (B, S, KV, hd) of one dtype, also as strided views; cos and sin (T, hd/2) in
/// fp32 (double for a double q); positions int64, (B, S) or (1, S), or undefined for 0 ... S-1.
/// Results are contiguous (B, S, H or KV, hd). Differentiable once in q and k (the backward rotates
/// by −angle; saves only tables and positions). Throws a config Error for shapes that do not match,
/// a data Error for a position outside the tables.
TITAN_API std::pair<at::Tensor, at::Tensor> rope(const at::Tensor& q, const at::Tensor& k,
                                                 const at::Tensor& cos, const at::Tensor& sin,
                                                 const at::Tensor& positions);

}  // namespace titan::ops
