// Two layers as one autograd node each; they save fewer tensors than the layers they replace.
#pragma once

#include <ATen/core/Tensor.h>

namespace fused_layers {

/// x / sqrt(mean(x²) + eps) · weight over the last dimension; saves x and one number per row.
at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, double eps);

/// w2(silu(w1 x) ⊙ w3 x); saves x, w1 x and w3 x, and recomputes the gated product in backward.
at::Tensor feed_forward(const at::Tensor& x, const at::Tensor& w1, const at::Tensor& w2,
                        const at::Tensor& w3);

}  // namespace fused_layers
