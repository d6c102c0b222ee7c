// MXFP8 of a matrix: blocks of 32 values that share a power of two. Format: OCP Microscaling
// Formats 1.0; numbers follow torchao 0.18 to the bit. Used by the products of a layer and tests.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace titan::mx {

inline constexpr int64_t kBlock = 32;

/// How a block's power of two follows from its largest absolute value.
enum class Rounding {
  floor,  ///< 2^(floor(log2 maximum) - 8): values up to 512 times it, cut to 448
  rceil,  ///< 2^ceil(log2(maximum / 448)): nothing is cut
};

/// A matrix in MXFP8.
struct Blocks {
  at::Tensor values;  ///< (rows, k) kFloat8_e4m3fn
  at::Tensor scales;  ///< (rows, k / 32) bytes: exponent + 127 (e8m0); 255 is not a number
};

/// x (rows, k): blocks along k, which is filled up with zeros to a multiple of 32. A block that
/// holds a value that is not a number is not a number as a whole; infinities become 448 times the
/// block's power of two. Blocks of zeros have exponent -127.
Blocks quantize(const at::Tensor& x, Rounding rounding);

/// In `dtype`, in which values and powers of two are multiplied.
at::Tensor dequantize(const Blocks& x, at::ScalarType dtype);

/// What MXFP8 leaves of a matrix: dequantize(quantize(x)) in x's dtype, to the bit; without the
/// tensors in between on the CPU.
at::Tensor round_trip(const at::Tensor& x, Rounding rounding);

/// Whether the device multiplies MXFP8 matrices itself (a GPU of compute capability 10 or more):
/// tried with a small product. Meta stands for a device that does.
bool multiplies_mxfp8(c10::Device device);

/// left (m, k) · right (n, k)ᵀ, rounded to `dtype`; sums are in the device's own order.
at::Tensor multiply_by_device(const Blocks& left, const Blocks& right, at::ScalarType dtype);

/// Scales (rows, columns) in the order in which the matrix units read them: tiles of 128 x 4, see
/// "block scaling factors layout" of cuBLAS. Filled up with zeros; one row of bytes.
at::Tensor in_tiles(const at::Tensor& scales);

}  // namespace titan::mx
