// What float8 leaves of a tensor, in one pass over it. Used by products that are made by their
// definition.
#pragma once

#include "quantize.h"

namespace titan::float8 {

/// dequantize({cast(x, scale, format), scale}), to the bit, for a matrix x; without the tensors in
/// between on the CPU.
at::Tensor round_trip(const at::Tensor& x, const at::Tensor& scale, at::ScalarType format);

}  // namespace titan::float8
