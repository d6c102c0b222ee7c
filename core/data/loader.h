// From documents to the batches of a step. Each row of the global batch is one stream of documents;
// a data-parallel rank owns a set of rows, so every layout trains on the same tokens at every step.
// Reads ahead on a thread of its own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include <titan/dataset.h>
#include <titan/tokenizer.h>
#include <titan/transform.h>
#include <titan/value.h>

#include "core/data/row_packer.h"

namespace titan::core {

struct LoaderOptions {
  int64_t seq_len = 0;
  int64_t num_rows = 1;   ///< of the global batch: sequences per step over all ranks
  int64_t first_row = 0;  ///< this rank owns rows [first_row, first_row + num_own_rows)
  int64_t num_own_rows = 1;
  int64_t rows_per_microbatch = 1;
  int64_t num_prefetched_steps = 2;
};

/// Thread: the trainer thread calls everything; one further thread reads, tokenizes and packs.
class Loader {
 public:
  /// `dataset` and `tokenizer` outlive the loader.
  Loader(const Dataset& dataset, const Tokenizer& tokenizer, const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;

  /// Starts to read and waits until the first step is there: data that cannot even give one step is
  /// an error here, before anything is written.
  void start();
  /// The microbatches of the next step, on the CPU; num_valid_tokens is this rank's own count. An
  /// error of the reading thread is thrown here, at the step whose data it concerns.
  StepBatches next_step();

  /// The position after the last `next_step`: `restore(state())` in another loader over the same
  /// rows continues there.
  Value state() const { return state_; }
  /// Only before `start` and the first `next_step`. Throws a data Error when the state belongs to
  /// another number of rows.
  void restore(const Value& state);

 private:
  struct Prepared {
    StepBatches batches;
    Value state;
    std::exception_ptr error;
  };

  StepBatches read_step();
  Value read_state() const;
  void run();

  LoaderOptions options_;
  std::vector<RowPacker> rows_;
  Value state_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Prepared> prepared_;
  bool closing_ = false;
  std::thread thread_;  // last: starts when everything above exists
};

}  // namespace titan::core
