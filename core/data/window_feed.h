// Produces the token windows of this rank's rows, step after step, read ahead by its own threads.
// Used by the loader.
//
// The data of a run is a fixed number of streams, one per row of the global batch at the run's
// start. Window w of the run is window w / num_streams of stream w mod num_streams, and each step
// takes the next global-batch-many windows. So every layout trains on the same tokens. A run that
// resumes with another number of ranks or another global batch size continues exactly: no window is
// lost or repeated.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <titan/dataset.h>
#include <titan/tokenizer.h>
#include <titan/value.h>

#include "core/data/feed_state.h"
#include "core/data/order/source_access.h"
#include "core/data/packer.h"
#include "core/data/slow_notice.h"

namespace titan::core {

/// One data set of a blend. The data set outlives every feed.
struct Source {
  std::string name;
  double weight = 1;
  const Dataset* dataset = nullptr;
};

struct FeedOptions {
  int64_t num_rows = 1;   ///< of the global batch: windows per step over all ranks
  int64_t first_row = 0;  ///< this rank takes rows [first_row, first_row + num_own_rows)
  int64_t num_own_rows = 1;
  int64_t vocab_size = 0;   ///< ids must be below
  int64_t num_workers = 1;  ///< threads that read, tokenise and pack
  int64_t num_prefetched_steps = 2;
  double timeout_seconds = 60;  ///< longest wait for a window; then the source has stalled
  /// `state` also has the restored positions of streams that this rank does not read.
  bool keeps_other_positions = false;
  double seconds_to_notice = 10;  ///< wait before the first log message; then less and less often
  OrderOptions order;
  PackingOptions packing;
  ConversationOptions conversations;
};

/// Thread: the trainer thread calls everything; the feed's own threads produce the windows.
class WindowFeed {
 public:
  /// `tokenizer` outlives the feed.
  WindowFeed(std::vector<Source> sources, const Tokenizer& tokenizer, const FeedOptions& options);
  /// Waits for its threads, unless one of them hangs in a stalled source. Then the threads are
  /// detached, and data sets and tokenizer must not be destroyed.
  ~WindowFeed();
  WindowFeed(const WindowFeed&) = delete;

  /// Before `start`. `state` has a position of at least each of this rank's streams (own_streams);
  /// of several positions of one stream the furthest counts. Throws a config Error for other data
  /// (check_same_data). `start` throws a data Error if a stream is missing.
  void restore(FeedState state);

  /// Starts to read and waits for the first step; data without even one step is an error here.
  void start();
  /// The windows of this rank's rows of the next step; with `once`, empty ones for rows that have
  /// ended. An error of a source is thrown at the step whose data it concerns. Throws an io Error
  /// that names the document being read when a source gives nothing for timeout_seconds.
  std::vector<Window> next_step();
  /// By source, the number of epochs that all of this rank's rows had finished by the last
  /// `next_step`. Only after `start`.
  std::vector<int64_t> ended_epochs() const;
  const std::vector<Source>& sources() const { return sources_; }
  /// The position after the last `next_step`, of this rank's streams or, with
  /// keeps_other_positions, of all that are known.
  FeedState state() const;
  bool has_stalled() const { return has_stalled_; }

 private:
  struct Need;
  struct Stream;
  struct Work;  // state shared by the threads

  void open_streams();
  Stream& wait_for(int64_t behind_start, SlowNotice& notice, std::unique_lock<std::mutex>& lock);
  std::string waiting_for(const Stream& stream) const;

  std::vector<Source> sources_;
  const Tokenizer& tokenizer_;
  FeedOptions options_;
  FeedState start_;        // where this run begins; has streams only before `start`
  int64_t num_steps_ = 0;  // steps returned
  bool has_stalled_ = false;
  std::shared_ptr<Work> work_;  // null before start
  std::vector<std::thread> threads_;
};

/// The streams, ascending, out of `num_streams`, of rows [first_row, first_row + num_own_rows) in
/// any step, in a run with `num_rows` windows per step that begins with window `first_window`.
std::vector<int64_t> own_streams(int64_t num_streams, int64_t first_window, int64_t num_rows,
                                 int64_t first_row, int64_t num_own_rows);

}  // namespace titan::core
