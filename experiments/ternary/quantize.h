// The quantisers of BitNet b1.58, whose gradient is that of the identity (straight-through).
// Ma et al., 2024 (arXiv:2402.17764); Bengio et al., 2013 (arXiv:1308.3432).
#pragma once

#include <ATen/core/Tensor.h>

namespace ternary {

inline constexpr double kLeast = 1e-5;  ///< a smaller mean or maximum counts as this

/// scale · clip(round(x / scale), -1, 1), of x's dtype. `scale`: a scalar, the mean of |x| over the
/// whole weight.
at::Tensor ternary(const at::Tensor& x, const at::Tensor& scale);

/// Each row of x (..., features) in 8 bits: round(127 x / maximum) · maximum / 127. `maximum`
/// (..., 1): of |x| over the row.
at::Tensor eight_bits(const at::Tensor& x, const at::Tensor& maximum);

}  // namespace ternary
