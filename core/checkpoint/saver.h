// Writes checkpoints on a background thread. Used by the checkpointer.
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

/// What one rank puts into a checkpoint.
struct RankFiles {
  int64_t rank = 0;
  std::vector<ShardFile> files;
  std::string state_name, state_text;   ///< the rank's own small state; empty name: none
  int64_t first_row = 0, num_rows = 0;  ///< of the data position in state_text
};

struct SaveJob {
  std::filesystem::path folder;  ///< of this checkpoint; rank 0 makes it before any rank writes
  CheckpointManifest manifest;   ///< without its list of files; rank 0's is written
  RankFiles own;
  Staging* staging = nullptr;  ///< the tensors are copied there first; null: written directly
  /// A local checkpoint (titan/checkpoints/local_parts.h): each rank writes a manifest of its own,
  /// on its host, and the folder exists there.
  bool is_local = false;
  std::optional<RankFiles> copy;  ///< of another rank's files; never staged
};

struct SaveOutcome {
  int64_t step = 0;
  std::filesystem::path folder;
  std::string error;  ///< empty: the checkpoint is complete
  bool is_local = false;
  int64_t bytes = 0;   ///< of all ranks
  double seconds = 0;  ///< from the start of writing to the manifest
};

/// Thread: the trainer thread calls everything; one further thread writes. At most one save at a
/// time.
class Saver {
 public:
  /// [writing thread] Called after each save. An exception becomes a warning.
  using CleanUp = std::function<void(const SaveOutcome& outcome)>;

  /// `patience`: how long a rank that has written waits for the others. `warm_up`: the writing
  /// thread's first work; may be empty.
  Saver(const Rendezvous& rendezvous, std::chrono::seconds patience, CleanUp clean_up,
        std::function<void()> warm_up);
  /// Does not wait for the other ranks: call `wait` first if the save must be complete.
  ~Saver();
  Saver(const Saver&) = delete;

  bool is_busy() const;
  /// Starts to write; not while busy. The caller leaves the job's tensors unchanged until they are
  /// copied or, without staging, until the outcome is available.
  void start(SaveJob job);
  /// Waits until the caller may change the tensors of the last job.
  void wait_until_copied();
  /// The outcome of the last save, returned once, or nothing while it is not available.
  std::optional<SaveOutcome> poll();
  /// Waits for the last save; returns its outcome once, nothing if that was returned already.
  std::optional<SaveOutcome> wait();

 private:
  void run();
  SaveOutcome write(SaveJob& job);
  void copy(SaveJob& job);

  Agreement agreement_;
  std::chrono::seconds patience_;
  CleanUp clean_up_;
  std::function<void()> warm_up_;
  int64_t num_saves_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<SaveJob> job_;          // set by start, removed when finished
  bool is_copied_ = true;               // the writing thread no longer reads the tensors of job_
  std::optional<SaveOutcome> outcome_;  // not yet returned
  bool closing_ = false;
  std::thread thread_;  // last: starts when everything above exists
};

}  // namespace titan::core
