// Rows of 8-bit numbers with a scale for each row, in the layout of torchft's quantised
// collectives.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace titan::semi_sync {

enum class RowType {
  int8,         ///< equal steps: the error is the same for all numbers of a row
  float8_e4m3,  ///< three bits of mantissa: small numbers of a row have smaller errors
};

/// Bytes of a row of `columns` numbers: the scale, then one byte for each number, padded to four.
int64_t bytes_of_row(int64_t columns);

/// `rows` (rows, columns) in float32, as bytes (rows, bytes_of_row(columns)): a float32 scale of
/// largest / max |x|, or 1 for a row of zeros, then x * scale rounded to nearest, ties to even. The
/// largest number is 127 of int8 and 448 of float8_e4m3.
at::Tensor to_quantized_rows(const at::Tensor& rows, RowType type);
/// The float32 values (rows, columns) of such bytes.
at::Tensor from_quantized_rows(const at::Tensor& bytes, int64_t columns, RowType type);

}  // namespace titan::semi_sync
