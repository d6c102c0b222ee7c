// Quantizes a matrix to float8 with the scale that fills the format, in one or two passes over
// memory, on devices with such an operation. Used by converters that quantize the operands of a
// layer.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>
#include <titan/export.h>

namespace titan::ops {

TITAN_OPTIONAL_HEADER(quantize);

enum class Float8Scale { as_it_is, down_to_power_of_two };

struct Float8 {
  at::Tensor values;  ///< x · scale in fp32, clamped to the format's range and rounded to nearest
  at::Tensor scale;   ///< fp32: the format's largest value / x's largest absolute value
};

/// Whether the device has the operations for tensors like x: float32 or bfloat16, not on the CPU.
/// The resulting values are contiguous, also for a transposed view.
TITAN_API bool has_float8(const at::Tensor& x);

/// One scalar scale for all of x (rows, columns). `format`: kFloat8_e4m3fn or kFloat8_e5m2. The
/// scale is computed in double precision from max(largest absolute value, 1e-12), as in torchao
/// 0.18; it is NaN if an element is. Throws an internal Error if has_float8(x) is false.
TITAN_API Float8 float8_of_tensor(const at::Tensor& x, at::ScalarType format, Float8Scale rounding);

/// x · scale in fp32, clamped to the range of `format` and rounded to nearest. `scale`: an fp32
/// scalar on x's device. Throws as float8_of_tensor.
TITAN_API at::Tensor float8_by_scale(const at::Tensor& x, const at::Tensor& scale,
                                     at::ScalarType format);

/// One scale per row, (rows, 1), in kFloat8_e4m3fn; otherwise as float8_of_tensor.
TITAN_API Float8 float8_of_rows(const at::Tensor& x, Float8Scale rounding);

}  // namespace titan::ops
