// Float8 products by the device's own matrix units. Used by the products of a layer.
#pragma once

#include <c10/core/Device.h>

#include "quantize.h"

namespace titan::float8 {

/// Whether the device multiplies float8 matrices itself (a GPU of compute capability 8.9 or more):
/// tried with a small product. Meta stands for a device that does.
bool multiplies_float8(c10::Device device);

enum class Accumulation { full, fast };

/// left (m, k) · right (k, n), rounded to `dtype`; sums are in the device's own order. Scales: each
/// a scalar or along k. Dimensions that are no multiples of 16 are filled up with zeros.
at::Tensor multiply_by_device(const Quantized& left, const Quantized& right, at::ScalarType dtype,
                              Accumulation accumulation);

}  // namespace titan::float8
