// Rounds a tensor to float8 and back in one pass. Used by Float8Products with
// Arithmetic::by_definition.
#pragma once

#include "quantize.h"

namespace titan::float8 {

/// dequantize({cast(x, scale, format), scale}), bitwise, for a matrix x; without temporary tensors
/// on the CPU.
at::Tensor round_trip(const at::Tensor& x, const at::Tensor& scale, at::ScalarType format);

}  // namespace titan::float8
