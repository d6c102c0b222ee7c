// Progress of a download: transfer threads count, the main thread shows. Used by file_transfer.cpp
// and download_run.cpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace titan::download {

enum class Show {
  nothing,  ///< warnings only
  lines,    ///< a log line every few seconds
  bar,      ///< one line of the terminal, redrawn
};

/// Thread-safe except for show(), which one thread calls.
class Progress {
 public:
  Progress(Show how, size_t num_files, int64_t total_bytes);
  /// Clears the bar.
  ~Progress();

  /// Bytes from the network; negative when some were discarded.
  void add_received(int64_t bytes) { done_ += bytes, received_ += bytes; }
  /// Bytes already on disk; negative likewise.
  void add_present(int64_t bytes) { done_ += bytes; }
  void add_file() { ++files_; }
  int64_t received() const { return received_; }
  size_t files() const { return files_; }

  /// Logs a line between redraws of the bar; dropped when nothing is shown.
  void say(const std::string& line);
  /// The same at level warn, always shown.
  void warn(const std::string& line);

  /// Seconds between two calls of show().
  double interval() const;
  void show();

 private:
  void clear_bar();
  /// Bytes per second over the last seconds; none before the first bytes.
  std::optional<double> rate();
  /// "42.0 %  1.2 GB of 2.9 GB  3/7 files  85.1 MB/s  ETA 20 s"
  std::string facts();
  double share() const;

  const Show how_;
  const size_t num_files_;
  const int64_t total_;
  std::atomic<int64_t> done_{0}, received_{0};
  std::atomic<size_t> files_{0};
  std::mutex screen_;
  bool has_bar_ = false;
  std::deque<std::pair<double, int64_t>> samples_;  ///< time, bytes received
};

}  // namespace titan::download
