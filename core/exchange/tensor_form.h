// Puts a tensor into the type and order of rows in which others want it. Used where weights are
// written in another form than they are stored, or are computed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>

namespace titan::core {

/// Where the two halves of what a head rotates lie.
enum class RowOrder {
  as_stored,
  pairs_to_halves,  ///< of each head, row 2j + r becomes row r * size / 2 + j
  halves_to_pairs,  ///< the way back
};

/// What a tensor shall become.
struct TensorForm {
  std::string dtype;  ///< as safetensors names it; between F64, F32, BF16 and F16 it is converted
  RowOrder order = RowOrder::as_stored;
  int64_t num_heads = 0;  ///< that the rows belong to; without meaning for as_stored
};

/// `tensor` in the type that safetensors calls `dtype`, rounded to the nearest, ties to even.
/// Throws a data Error that names the tensor for a finite value that the type cannot hold.
at::Tensor in_dtype(const at::Tensor& tensor, const std::string& dtype, std::string_view name);

/// How many rows of a tensor belong to one head. Throws a data Error when `num_rows` do not divide
/// into heads of even size.
int64_t rows_of_head(int64_t num_rows, const TensorForm& form, std::string_view name);

/// `tensor`, of any values, with its rows in the order that `form` says. Throws as rows_of_head.
at::Tensor in_row_order(const at::Tensor& tensor, const TensorForm& form, std::string_view name);

/// `tensor` in `form`, row-major, as TensorStream::read gives the same values when they are stored.
/// Throws as in_dtype and rows_of_head.
at::Tensor in_form(const at::Tensor& tensor, const TensorForm& form, std::string_view name);

}  // namespace titan::core
