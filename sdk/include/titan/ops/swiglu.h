// Fused gate of the feed-forward layer. Used by nn::FeedForward.
#pragma once

#include <ATen/core/Tensor.h>
#include <titan/export.h>

namespace titan::ops {

/// silu(gate) ⊙ up with silu(z) = z · sigmoid(z). Shazeer, 2020.
///
/// gate and up: same shape and dtype; computed in fp32 (double for double), result contiguous in
/// their dtype. Differentiable once in both; saves only gate and up. Throws a config Error if
/// shapes or dtypes differ.
TITAN_API at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up);

}  // namespace titan::ops
