// Reads values of an Arrow column. Used by the dataset `parquet`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/array/array_base.h>
#include <arrow/type.h>

namespace titan::datasets {

/// Whether a column of this type holds texts: string, large_string, string_view, or a dictionary of
/// one of them.
bool is_text(const arrow::DataType& type);
/// Whether it holds token ids: list, large_list or fixed_size_list of integers.
bool is_token_list(const arrow::DataType& type);

/// Whether row `row` has no value.
bool is_null(const arrow::Array& column, int64_t row);
/// The text of a row that is not null; lives as long as the column.
std::string_view text_at(const arrow::Array& column, int64_t row);
/// The ids of a row that is not null. Throws a data Error, without the place, for a null among them
/// and for ids that are negative or above 2^31 - 1.
void tokens_at(const arrow::Array& column, int64_t row, std::vector<int32_t>& ids);

}  // namespace titan::datasets
