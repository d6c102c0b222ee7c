// Turns token windows into the batches of a step. Used by the trainer and the validator.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <titan/transform.h>
#include <titan/value.h>

#include "core/data/window_feed.h"

namespace titan::core {

struct LoaderOptions {
  FeedOptions feed;
  int64_t rows_per_microbatch = 1;
  /// Positions restart at 0 in each document, and attention stays within the document.
  bool isolates_documents = false;
  bool pins_memory = false;  ///< batches in page-locked memory, for copies that overlap computation
};

/// Thread: the trainer thread calls everything; the feed's threads read ahead.
class Loader {
 public:
  /// `tokenizer` and the sources' data sets outlive the loader.
  Loader(std::vector<Source> sources, const Tokenizer& tokenizer, const LoaderOptions& options);

  /// Starts to read and waits for the first step. Data without even one step is an error here,
  /// before the run writes anything.
  void start() { feed_->start(); }
  /// The microbatches of the next step, on the CPU; counts are this rank's own. Rows of data that
  /// has ended (order.once) have no labels. Throws as WindowFeed::next_step.
  StepBatches next_step();
  /// Whether the data had ended for every row of the last step.
  bool has_ended() const { return has_ended_; }

  /// See WindowFeed::ended_epochs; source_names() names the entries.
  std::vector<int64_t> ended_epochs() const { return feed_->ended_epochs(); }
  std::vector<std::string> source_names() const;

  /// The position after the last `next_step`; see FeedState.
  FeedState state() const { return feed_->state(); }
  /// Only before `start` and the first `next_step`.
  void restore(FeedState state) { feed_->restore(std::move(state)); }
  /// [any time] From now on reads other rows, from `state` on, which has a position of each of
  /// their streams.
  void read_rows(int64_t first_row, int64_t num_own_rows, FeedState state);
  const LoaderOptions& options() const { return options_; }
  /// Whether a thread hangs in a source; it uses tokenizer and data sets until the process ends.
  bool has_stalled() const { return feed_->has_stalled(); }

 private:
  Batch make_batch(const Window* windows) const;

  LoaderOptions options_;
  const Tokenizer& tokenizer_;
  std::unique_ptr<WindowFeed> feed_;
  bool has_ended_ = false;
};

}  // namespace titan::core
