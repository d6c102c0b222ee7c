// Quantises tensors to float8: scales and casts, bitwise as torchao 0.18. Used by the products of a
// layer, the scales of weights, the float8 all-gather and tests.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace titan::float8 {

inline constexpr double kLeastMaximum = 1e-12;  ///< a smaller maximum counts as this

enum class ScaleRounding { none, down_to_power_of_two };

/// fp32 scale with which a tensor of this largest absolute value fills the range of `format`,
/// computed in double precision. `maximum`: any shape. `format`: kFloat8_e4m3fn or kFloat8_e5m2. An
/// infinite maximum gives 0, NaN gives NaN.
at::Tensor scale_of(const at::Tensor& maximum, at::ScalarType format, ScaleRounding rounding);

/// The largest absolute values of x along `dim`, which is kept with size 1.
at::Tensor largest_along(const at::Tensor& x, int64_t dim);

/// x · scale in fp32, clamped to the range of `format` and rounded to it. NaN stays NaN.
at::Tensor cast(const at::Tensor& x, const at::Tensor& scale, at::ScalarType format);

/// A tensor in a float8 format: `values` / `scale`.
struct Quantized {
  at::Tensor values;  ///< kFloat8_e4m3fn or kFloat8_e5m2
  at::Tensor scale;   ///< fp32; a scalar, or of the values' shape with 1 for the scaled dimension
};

/// `values` / `scale` in fp32.
at::Tensor dequantize(const Quantized& x);

}  // namespace titan::float8
