// A rank's current activity, written once a second for programs that watch the run:
// status/rank_<r>.json.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>

#include <titan/dist/mesh.h>
#include <titan/value.h>

namespace titan::core {

/// A rank's values; the file leaves out unknown ones.
struct StatusNumbers {
  int64_t step = 0;              ///< the last that began
  double step_seconds = 0;       ///< of the last completed step
  double tokens_per_second = 0;  ///< of the job, over the last logged interval
  double loss = 0;
  int64_t memory_bytes = 0, memory_total = 0;  ///< peak of the last logged interval; of the device
  Value seconds;                               ///< per step by phase, in the last logged interval
  bool has_logged = false;
};

/// One JSON object, padded with blanks to whole kilobytes and rewritten in place: a reader that
/// finds a half-written object reads again. A thread of its own writes it. The first failure is
/// logged as a warning and ends the writing.
class StatusFile {
 public:
  /// `fixed`: members that never change ("rank", "host", ...). `mesh` outlives this.
  StatusFile(std::filesystem::path path, Value fixed, const dist::Mesh& mesh);
  /// Writes it a last time, with the state "ended".
  ~StatusFile();
  StatusFile(const StatusFile&) = delete;

  /// [trainer thread] Costs no more than a lock.
  void set(const StatusNumbers& numbers);
  void set_step(int64_t step, double seconds_of_last);

 private:
  void run();
  void write(const char* state);
  std::string text(const char* state) const;

  std::filesystem::path path_;
  Value fixed_;
  const dist::Mesh& mesh_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool closing_ = false;
  StatusNumbers numbers_;
  size_t written_bytes_ = 0;  // of the last text
  bool has_failed_ = false;
  std::thread thread_;
};

}  // namespace titan::core
