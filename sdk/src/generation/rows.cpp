#include <titan/generation/rows.h>

#include <algorithm>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <titan/error.h>

#include "generation/row_batch.h"

namespace titan {
namespace {

void check_row(const SequenceRow& row, size_t number, int64_t seq_len, size_t width) {
  const auto size = static_cast<int64_t>(row.ids.size());
  TITAN_CHECK(size <= seq_len + 1, data, "row ", number, " has ", size,
              " ids; a row of training.seq_len = ", seq_len, " takes ", seq_len + 1);
  TITAN_CHECK(row.prompt_size >= 1 && row.prompt_size < row.ids.size(), data, "row ", number,
              " has ", row.prompt_size, " ids of a prompt and ", size,
              " in all; there must be a prompt and an answer");
  const size_t answer = row.ids.size() - row.prompt_size;
  TITAN_CHECK(width == 0 || row.given.size() == answer, data, "row ", number, " is given ",
              row.given.size(), " vectors for ", answer, " tokens of its answer");
  for (const std::vector<float>& vector : row.given)
    TITAN_CHECK(vector.size() == width, data, "row ", number, " is given a vector of ",
                vector.size(), " numbers; the first one has ", width);
}

}  // namespace

Batch unlabelled_rows(const std::vector<std::span<const int32_t>>& rows, int64_t seq_len) {
  const auto num_rows = static_cast<int64_t>(rows.size());
  Batch batch;
  batch.tokens = at::zeros({num_rows, seq_len}, at::kLong);
  batch.positions = at::arange(seq_len, at::kLong).expand({num_rows, seq_len}).contiguous();
  batch.num_positions = seq_len;
  batch.documents = at::zeros({num_rows, seq_len}, at::kInt);
  auto* row_tokens = batch.tokens.mutable_data_ptr<int64_t>();
  for (const std::span<const int32_t> ids : rows) {
    std::copy_n(ids.begin(), std::min<int64_t>(std::ssize(ids), seq_len), row_tokens);
    row_tokens += seq_len;
  }
  return batch;
}

Batch batch_of_rows(const std::vector<SequenceRow>& rows, int64_t seq_len) {
  TITAN_CHECK(!rows.empty(), data, "a batch has no rows");
  const size_t width = rows.front().given.empty() ? 0 : rows.front().given.front().size();
  const auto num_rows = static_cast<int64_t>(rows.size());
  std::vector<std::span<const int32_t>> inputs;  // the last id of a row is only a label
  for (size_t r = 0; r < rows.size(); ++r) {
    check_row(rows[r], r, seq_len, width);
    inputs.push_back(std::span(rows[r].ids).first(rows[r].ids.size() - 1));
  }
  Batch batch = unlabelled_rows(inputs, seq_len);
  batch.labels = at::full({num_rows, seq_len}, Batch::kIgnoredLabel, at::kLong);
  batch.is_padding = at::full({num_rows, seq_len}, true, at::kBool);
  if (width > 0)
    batch.reference = at::zeros({num_rows, seq_len, static_cast<int64_t>(width)}, at::kFloat);
  auto* labels = batch.labels.mutable_data_ptr<int64_t>();
  auto* padding = batch.is_padding.mutable_data_ptr<bool>();
  for (size_t r = 0; r < rows.size(); ++r) {
    const SequenceRow& row = rows[r];
    const auto first = static_cast<int64_t>(r) * seq_len;
    for (size_t i = 0; i + 1 < row.ids.size(); ++i) {
      const int64_t place = first + static_cast<int64_t>(i);
      padding[place] = false;
      if (i + 1 < row.prompt_size) continue;
      labels[place] = row.ids[i + 1];
      if (width == 0) continue;
      auto* given = batch.reference.mutable_data_ptr<float>() + place * static_cast<int64_t>(width);
      for (const float number : row.given[i + 1 - row.prompt_size]) *given++ = number;
    }
  }
  return batch;
}

}  // namespace titan
