// Writes checkpoints, in the foreground or behind the training thread's back. Used by the
// checkpointer.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <titan/checkpoints/manifest.h>

#include "core/checkpoint/agreement.h"
#include "core/checkpoint/writer.h"

namespace titan::core {

/// What this rank puts into a checkpoint.
struct SaveJob {
  std::filesystem::path folder;  ///< of this checkpoint; made by rank 0 before anybody writes
  CheckpointManifest manifest;   ///< without files; rank 0's is written
  std::vector<ShardFile> files;
  Staging* staging = nullptr;  ///< where the tensors are copied to first; null: written as they are
  std::string state_name, state_text;   ///< the rank's own small state; empty name: none
  int64_t first_row = 0, num_rows = 0;  ///< of the data position in state_text
};

struct SaveOutcome {
  int64_t step = 0;
  std::filesystem::path folder;
  std::string error;   ///< empty: the checkpoint is complete
  int64_t bytes = 0;   ///< of all ranks
  double seconds = 0;  ///< from the start of writing to the manifest
};

/// Thread: the trainer thread calls everything; one further thread writes. At most one save at a
/// time.
class Saver {
 public:
  /// Called on rank 0, on the writing thread, after each save. What it throws becomes a warning.
  using CleanUp = std::function<void(const SaveOutcome& outcome)>;

  /// `patience`: how long a rank that has written waits for the others. `warm_up`: the writing
  /// thread's first work; may be empty.
  Saver(const Rendezvous& rendezvous, std::chrono::seconds patience, CleanUp clean_up,
        std::function<void()> warm_up);
  /// Does not wait for the other ranks: call `wait` first where the save shall be complete.
  ~Saver();
  Saver(const Saver&) = delete;

  bool is_busy() const;
  /// Starts to write; not while busy. The job's tensors stay untouched until they are copied, and
  /// without staging until the outcome is there.
  void start(SaveJob job);
  /// Waits until the tensors of the last job may change again.
  void wait_until_copied();
  /// The outcome of the last save, once, as soon as it is there.
  std::optional<SaveOutcome> poll();
  /// The outcome of the last save, once; nothing when there was none since. Waits for it.
  std::optional<SaveOutcome> wait();

 private:
  void run();
  SaveOutcome write(SaveJob& job);
  void copy(SaveJob& job);

  Agreement agreement_;
  std::chrono::seconds patience_;
  CleanUp clean_up_;
  std::function<void()> warm_up_;
  bool is_rank_zero_;
  int64_t num_saves_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<SaveJob> job_;          // handed over, not finished
  bool is_copied_ = true;               // nobody reads the tensors of job_ any more
  std::optional<SaveOutcome> outcome_;  // not yet told
  bool closing_ = false;
  std::thread thread_;  // last: starts when everything above exists
};

}  // namespace titan::core
