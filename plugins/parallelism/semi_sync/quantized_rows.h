// Rows of 8-bit integers with a scale for each row, as torchft sends them.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace titan::semi_sync {

/// Bytes of a row of `columns` numbers: the scale, then one byte for each number, padded to four.
int64_t bytes_of_row(int64_t columns);

/// `rows` (rows, columns) in float32, as bytes (rows, bytes_of_row(columns)): a float32 scale of
/// 127 / max |x|, or 1 for a row of zeros, then round(x * scale).
at::Tensor to_int8_rows(const at::Tensor& rows);
/// The float32 values (rows, columns) of such bytes.
at::Tensor from_int8_rows(const at::Tensor& bytes, int64_t columns);

}  // namespace titan::semi_sync
