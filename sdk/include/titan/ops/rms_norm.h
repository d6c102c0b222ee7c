// Fused root mean square normalisation. Used by nn::RmsNorm and by nn::OutputHead.
#pragma once

#include <ATen/core/Tensor.h>
#include <titan/export.h>

namespace titan::ops {

/// y = x / sqrt(mean(x²) + eps) · weight over the last dimension. Zhang and Sennrich, 2019.
///
/// x (..., dim), weight (dim), any dtypes; computed in fp32 (double for a double x), returned in
/// x's dtype, contiguous. Differentiable once in x and weight; saves x, weight and one number per
/// row. The sums over rows run in fixed chunks, so gradients do not depend on the number of
/// threads. Throws a config Error for shapes that do not match.
TITAN_API at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

}  // namespace titan::ops
