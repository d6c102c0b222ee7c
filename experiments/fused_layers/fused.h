// Two layers as one node of the graph each, which keep less than the layers that they are made of.
#pragma once

#include <ATen/core/Tensor.h>

namespace fused_layers {

/// x / sqrt(mean(x²) + eps) · weight over the last dimension; keeps x and one number per row.
at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, double eps);

/// w2(silu(w1 x) ⊙ w3 x); keeps x, w1 x and w3 x, and multiplies the gate again in backward.
at::Tensor feed_forward(const at::Tensor& x, const at::Tensor& w1, const at::Tensor& w2,
                        const at::Tensor& w3);

}  // namespace fused_layers
