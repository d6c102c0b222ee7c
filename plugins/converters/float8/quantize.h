// Float8 of a tensor: scales, casts and products. Numbers follow torchao 0.18 to the bit. Used by
// the products of a layer, the scales of weights, the float8 all-gather and tests.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace titan::float8 {

inline constexpr double kLeastMaximum = 1e-12;  ///< below it a maximum counts as this

enum class ScaleRounding { none, down_to_power_of_two };

/// fp32 scale by which a tensor with this largest absolute value fills `format`'s range: computed
/// in double precision. `maximum`: any shape. `format`: kFloat8_e4m3fn or kFloat8_e5m2. A maximum
/// that is infinite gives 0, one that is not a number gives that.
at::Tensor scale_of(const at::Tensor& maximum, at::ScalarType format, ScaleRounding rounding);

/// The largest absolute values of x along `dim`, which stays with size 1.
at::Tensor largest_along(const at::Tensor& x, int64_t dim);

/// x · scale in fp32, cut to the range of `format` and rounded to it. What is not a number stays
/// so.
at::Tensor cast(const at::Tensor& x, const at::Tensor& scale, at::ScalarType format);

/// A tensor in a float8 format; its values times 1 / scale.
struct Quantized {
  at::Tensor values;  ///< kFloat8_e4m3fn or kFloat8_e5m2
  at::Tensor scale;   ///< fp32; a scalar, or of the values' shape with 1 for the scaled dimension
};

/// In fp32.
at::Tensor dequantize(const Quantized& x);

}  // namespace titan::float8
