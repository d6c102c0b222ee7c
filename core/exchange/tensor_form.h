// Converts a tensor to another dtype and order of rows. Used where exported weights are converted
// or computed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>

namespace titan::core {

/// Order of the rotary rows of each head.
enum class RowOrder {
  as_stored,
  pairs_to_halves,  ///< of each head, row 2j + r becomes row r * size / 2 + j
  halves_to_pairs,  ///< the inverse
};

/// The dtype and row order of a converted tensor.
struct TensorForm {
  std::string dtype;  ///< name in safetensors; conversions: between F64, F32, BF16 and F16
  RowOrder order = RowOrder::as_stored;
  int64_t num_heads = 0;  ///< number of heads in the rows; unused for as_stored
};

/// `tensor` converted to `dtype` (its name in safetensors), rounded to the nearest, ties to even.
/// Throws a data Error that names the tensor for a finite value that `dtype` cannot hold.
at::Tensor in_dtype(const at::Tensor& tensor, const std::string& dtype, std::string_view name);

/// The number of rows of a head. Throws a data Error when `num_rows` do not divide into heads of
/// even size.
int64_t rows_of_head(int64_t num_rows, const TensorForm& form, std::string_view name);

/// `tensor`, of any dtype, with its rows in the order of `form`. Throws as rows_of_head.
at::Tensor in_row_order(const at::Tensor& tensor, const TensorForm& form, std::string_view name);

/// `tensor` in `form`, row-major: the same as TensorStream::read gives for stored values. Throws as
/// in_dtype and rows_of_head.
at::Tensor in_form(const at::Tensor& tensor, const TensorForm& form, std::string_view name);

}  // namespace titan::core
