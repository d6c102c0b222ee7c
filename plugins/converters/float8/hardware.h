// Float8 products by the matrix units of the device. Used by Float8Products.
#pragma once

#include <c10/core/Device.h>

#include "quantize.h"

namespace titan::float8 {

/// Whether the device multiplies float8 matrices (a GPU of compute capability 8.9 or more): tried
/// with a small product. True for meta.
bool multiplies_float8(c10::Device device);

enum class Accumulation { full, fast };

/// left (m, k) · right (k, n), rounded to `dtype`; the device chooses the order of summation.
/// Scales: each a scalar or along k. Dimensions are padded with zeros to multiples of 16.
at::Tensor multiply_by_device(const Quantized& left, const Quantized& right, at::ScalarType dtype,
                              Accumulation accumulation);

}  // namespace titan::float8
