// Float8 of a matrix and the scale that fills the format, in one or two passes over memory, where a
// device brings it. Used by converters that quantise what a layer multiplies.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>
#include <titan/export.h>

namespace titan::ops {

TITAN_OPTIONAL_HEADER(quantize);

enum class Float8Scale { as_it_is, down_to_power_of_two };

struct Float8 {
  at::Tensor values;  ///< x · scale in fp32, cut to the format's range and rounded to nearest
  at::Tensor scale;   ///< fp32: the format's largest value over x's largest absolute value
};

/// Whether the device has the operations for tensors like x: float32 or bfloat16, not the CPU's.
/// The values that they make are contiguous, those of a transposed view, too.
TITAN_API bool has_float8(const at::Tensor& x);

/// With one scale for all of x (rows, columns), which is a scalar. `format`: kFloat8_e4m3fn or
/// kFloat8_e5m2. The scale is computed in double precision of a maximum of at least 1e-12, so as
/// torchao 0.18 computes it; it is not a number where an element is not. Throws an internal Error
/// where has_float8 does not hold.
TITAN_API Float8 float8_of_tensor(const at::Tensor& x, at::ScalarType format, Float8Scale rounding);

/// x · scale in fp32, cut to the range of `format` and rounded to nearest. `scale`: an fp32 scalar
/// on x's device. Throws as float8_of_tensor.
TITAN_API at::Tensor float8_by_scale(const at::Tensor& x, const at::Tensor& scale,
                                     at::ScalarType format);

/// With a scale (rows, 1) for each row, in kFloat8_e4m3fn; else as float8_of_tensor.
TITAN_API Float8 float8_of_rows(const at::Tensor& x, Float8Scale rounding);

}  // namespace titan::ops
