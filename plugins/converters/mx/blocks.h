// Quantises matrices to MXFP8: blocks of 32 values share a power of two. Format: OCP Microscaling
// Formats 1.0; bitwise as torchao 0.18. Used by MxProducts and tests.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace titan::mx {

inline constexpr int64_t kBlock = 32;

/// How a block's power of two follows from its largest absolute value.
enum class Rounding {
  floor,  ///< 2^(floor(log2 maximum) - 8): values are up to 512 times it and clamped to 448
  rceil,  ///< 2^ceil(log2(maximum / 448)): nothing is clamped
};

/// A matrix in MXFP8.
struct Blocks {
  at::Tensor values;  ///< (rows, k) kFloat8_e4m3fn
  at::Tensor scales;  ///< (rows, k / 32) bytes: exponent + 127 (e8m0); 255: NaN
};

/// x (rows, k): blocks along k, which is padded with zeros to a multiple of 32. A block with a NaN
/// becomes NaN as a whole; infinities become 448 times the block's power of two. Blocks of zeros
/// have exponent -127.
Blocks quantize(const at::Tensor& x, Rounding rounding);

/// Values times powers of two, multiplied in `dtype`.
at::Tensor dequantize(const Blocks& x, at::ScalarType dtype);

/// Bitwise dequantize(quantize(x)) in x's dtype; without temporary tensors on the CPU.
at::Tensor round_trip(const at::Tensor& x, Rounding rounding);

/// Whether the device multiplies MXFP8 matrices (a GPU of compute capability 10 or more): tried
/// with a small product. True for meta.
bool multiplies_mxfp8(c10::Device device);

/// left (m, k) · right (n, k)ᵀ, rounded to `dtype`; the device chooses the order of summation.
at::Tensor multiply_by_device(const Blocks& left, const Blocks& right, at::ScalarType dtype);

/// Scales (rows, columns) in the order of the matrix units: tiles of 128 x 4, see "block scaling
/// factors layout" of cuBLAS. Padded with zeros; one-dimensional.
at::Tensor in_tiles(const at::Tensor& scales);

}  // namespace titan::mx
