#include "core/data/batches/loader.h"

#include <algorithm>

#include <ATen/ops/empty.h>

#include <titan/error.h>

namespace titan::core {
namespace {

/// Where padding begins in a row (Batch::is_padding); after the last token of a full window.
int64_t start_of_padding(const Window& window) {
  return std::max<int64_t>(0, window.num_tokens - 1);
}

/// Fills one row of tokens and labels, seq_len elements each; the window has seq_len + 1 tokens.
void fill_row(const Window& window, int64_t seq_len, const PackingOptions& packing, int64_t* tokens,
              int64_t* labels) {
  std::copy(window.tokens.begin(), window.tokens.end() - 1, tokens);
  std::copy(window.tokens.begin() + 1, window.tokens.end(), labels);
  std::fill(labels + start_of_padding(window), labels + seq_len, Batch::kIgnoredLabel);
  for (const int32_t start : window.starts)
    if (start > 0 && !begins_with_target(packing, static_cast<size_t>(start)))
      labels[start - 1] = Batch::kIgnoredLabel;
  for (size_t t = 1; t < window.is_target.size(); ++t)
    if (!window.is_target[t]) labels[t - 1] = Batch::kIgnoredLabel;
}

void fill_documents(const Window& window, int64_t seq_len, int64_t* positions, int32_t* documents) {
  int32_t document = -1;
  int64_t position = 0;
  size_t next = 0;
  for (int64_t t = 0; t < seq_len; ++t, ++position) {
    if (next < window.starts.size() && t == window.starts[next]) {
      ++next, ++document;
      position = 0;
    }
    positions[t] = position;
    documents[t] = document;
  }
}

}  // namespace

Loader::Loader(std::vector<Source> sources, const Tokenizer& tokenizer,
               const LoaderOptions& options)
    : options_(options),
      tokenizer_(tokenizer),
      feed_(std::make_unique<WindowFeed>(std::move(sources), tokenizer, options.feed)) {
  TITAN_ASSERT(options.feed.num_own_rows % options.rows_per_microbatch == 0,
               options.feed.num_own_rows);
}

void Loader::read_rows(int64_t first_row, int64_t num_own_rows, FeedState state) {
  TITAN_ASSERT(num_own_rows % options_.rows_per_microbatch == 0, num_own_rows);
  options_.feed.first_row = first_row;
  options_.feed.num_own_rows = num_own_rows;
  options_.feed.keeps_other_positions = true;
  auto feed = std::make_unique<WindowFeed>(feed_->sources(), tokenizer_, options_.feed);
  feed->restore(std::move(state));
  feed_ = std::move(feed);
  feed_->start();
}

Batch Loader::make_batch(const Window* windows) const {
  const int64_t rows = options_.rows_per_microbatch, seq_len = options_.feed.packing.window - 1;
  const auto make = [&](at::ScalarType type) {
    return at::empty({rows, seq_len},
                     at::TensorOptions().dtype(type).pinned_memory(options_.pins_memory));
  };
  Batch batch{.tokens = make(at::kLong), .labels = make(at::kLong)};
  if (options_.isolates_documents) {
    batch.positions = make(at::kLong);
    batch.num_positions = seq_len;
    batch.documents = make(at::kInt);
  }
  const bool has_padding = std::any_of(windows, windows + rows, [&](const Window& window) {
    return start_of_padding(window) < seq_len;
  });
  if (has_padding) batch.is_padding = make(at::kBool);
  const Window ended = {.tokens = std::vector<int32_t>(static_cast<size_t>(seq_len + 1), 0),
                        .starts = {0}};
  for (int64_t row = 0; row < rows; ++row) {
    const Window& window = windows[row].tokens.empty() ? ended : windows[row];
    const int64_t place = row * seq_len;
    fill_row(window, seq_len, options_.feed.packing,
             batch.tokens.mutable_data_ptr<int64_t>() + place,
             batch.labels.mutable_data_ptr<int64_t>() + place);
    if (has_padding) {
      bool* const is_padding = batch.is_padding.mutable_data_ptr<bool>() + place;
      const int64_t start = start_of_padding(window);
      std::fill(is_padding, is_padding + start, false);
      std::fill(is_padding + start, is_padding + seq_len, true);
    }
    if (options_.isolates_documents)
      fill_documents(window, seq_len, batch.positions.mutable_data_ptr<int64_t>() + place,
                     batch.documents.mutable_data_ptr<int32_t>() + place);
  }
  return batch;
}

std::vector<std::string> Loader::source_names() const {
  std::vector<std::string> names;
  for (const Source& source : feed_->sources()) names.push_back(source.name);
  return names;
}

StepBatches Loader::next_step() {
  const std::vector<Window> windows = feed_->next_step();
  StepBatches step;
  for (size_t first = 0; first < windows.size();
       first += static_cast<size_t>(options_.rows_per_microbatch)) {
    step.microbatches.push_back(make_batch(&windows[first]));
    step.microbatches.back().places.first_row =
        options_.feed.first_row + static_cast<int64_t>(first);
  }
  has_ended_ = true;
  for (const Window& window : windows) {
    has_ended_ = has_ended_ && window.tokens.empty();
    step.num_local_valid_tokens += window.num_targets;
    step.num_local_text_bytes += window.num_bytes;
  }
  step.num_valid_tokens = step.num_local_valid_tokens;
  return step;
}

}  // namespace titan::core
