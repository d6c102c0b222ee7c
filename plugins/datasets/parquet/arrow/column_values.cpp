// See column_values.h.
#include "plugins/datasets/parquet/arrow/column_values.h"

#include <limits>
#include <utility>

#include <arrow/array/array_binary.h>
#include <arrow/array/array_dict.h>
#include <arrow/array/array_nested.h>
#include <arrow/array/array_primitive.h>

#include <titan/error.h>

namespace titan::datasets {
namespace {

bool holds_string(const arrow::DataType& type) {
  return type.id() == arrow::Type::STRING || type.id() == arrow::Type::LARGE_STRING ||
         type.id() == arrow::Type::STRING_VIEW;
}

template <class Array>
void copy_ids(const arrow::Array& values, int64_t begin, int64_t end, std::vector<int32_t>& ids) {
  const auto& numbers = static_cast<const Array&>(values);
  for (int64_t i = begin; i < end; ++i) {
    const auto id = numbers.Value(i);
    TITAN_CHECK(std::in_range<int32_t>(id) && id >= 0, data, "value ", i - begin,
                " of the list is ", +id, "; ids are from 0 to ",
                std::numeric_limits<int32_t>::max());
    ids.push_back(static_cast<int32_t>(id));
  }
}

void copy_ids_of_any_type(const arrow::Array& values, int64_t begin, int64_t end,
                          std::vector<int32_t>& ids) {
  switch (values.type_id()) {
    case arrow::Type::UINT8:
      return copy_ids<arrow::UInt8Array>(values, begin, end, ids);
    case arrow::Type::INT8:
      return copy_ids<arrow::Int8Array>(values, begin, end, ids);
    case arrow::Type::UINT16:
      return copy_ids<arrow::UInt16Array>(values, begin, end, ids);
    case arrow::Type::INT16:
      return copy_ids<arrow::Int16Array>(values, begin, end, ids);
    case arrow::Type::UINT32:
      return copy_ids<arrow::UInt32Array>(values, begin, end, ids);
    case arrow::Type::INT32:
      return copy_ids<arrow::Int32Array>(values, begin, end, ids);
    case arrow::Type::UINT64:
      return copy_ids<arrow::UInt64Array>(values, begin, end, ids);
    case arrow::Type::INT64:
      return copy_ids<arrow::Int64Array>(values, begin, end, ids);
    default:
      TITAN_ASSERT(false, "a list of ", values.type()->ToString());
  }
}

template <class List>
void copy_row(const arrow::Array& column, int64_t row, std::vector<int32_t>& ids) {
  const auto& lists = static_cast<const List&>(column);
  const int64_t begin = lists.value_offset(row);
  const int64_t end = begin + lists.value_length(row);
  const arrow::Array& values = *lists.values();
  if (values.null_count() > 0)
    for (int64_t i = begin; i < end; ++i)
      TITAN_CHECK(!values.IsNull(i), data, "value ", i - begin, " of the list is null");
  ids.reserve(static_cast<size_t>(end - begin));
  copy_ids_of_any_type(values, begin, end, ids);
}

}  // namespace

bool is_text(const arrow::DataType& type) {
  if (type.id() != arrow::Type::DICTIONARY) return holds_string(type);
  return holds_string(*static_cast<const arrow::DictionaryType&>(type).value_type());
}

bool is_token_list(const arrow::DataType& type) {
  if (type.id() != arrow::Type::LIST && type.id() != arrow::Type::LARGE_LIST &&
      type.id() != arrow::Type::FIXED_SIZE_LIST)
    return false;
  return arrow::is_integer(static_cast<const arrow::BaseListType&>(type).value_type()->id());
}

bool is_null(const arrow::Array& column, int64_t row) {
  if (column.IsNull(row)) return true;
  if (column.type_id() != arrow::Type::DICTIONARY) return false;
  const auto& coded = static_cast<const arrow::DictionaryArray&>(column);
  return coded.dictionary()->IsNull(coded.GetValueIndex(row));
}

std::string_view text_at(const arrow::Array& column, int64_t row) {
  switch (column.type_id()) {
    case arrow::Type::STRING:
      return static_cast<const arrow::StringArray&>(column).GetView(row);
    case arrow::Type::LARGE_STRING:
      return static_cast<const arrow::LargeStringArray&>(column).GetView(row);
    case arrow::Type::STRING_VIEW:
      return static_cast<const arrow::StringViewArray&>(column).GetView(row);
    default:
      break;
  }
  TITAN_ASSERT(column.type_id() == arrow::Type::DICTIONARY, column.type()->ToString());
  const auto& coded = static_cast<const arrow::DictionaryArray&>(column);
  return text_at(*coded.dictionary(), coded.GetValueIndex(row));
}

void tokens_at(const arrow::Array& column, int64_t row, std::vector<int32_t>& ids) {
  ids.clear();
  switch (column.type_id()) {
    case arrow::Type::LIST:
      return copy_row<arrow::ListArray>(column, row, ids);
    case arrow::Type::LARGE_LIST:
      return copy_row<arrow::LargeListArray>(column, row, ids);
    default:
      TITAN_ASSERT(column.type_id() == arrow::Type::FIXED_SIZE_LIST, column.type()->ToString());
      return copy_row<arrow::FixedSizeListArray>(column, row, ids);
  }
}

}  // namespace titan::datasets
