// Keeps two jobs from changing one checkpoint folder at a time: replica groups share it, and groups
// that do not know of each other may both want to save. Used by the checkpointer and own_start.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <mutex>

#include <titan/program/descriptor.h>

namespace titan::core {

/// An exclusive lock of flock(2) on the folder itself, which the kernel releases when the process
/// ends. Without locks in the file system, every call succeeds and nothing is protected.
/// Thread-safe.
class FolderTurn {
 public:
  /// False if another job has the turn for longer than `patience`. Each begin() that returned true
  /// needs an end(); this object's own turns may overlap.
  bool begin(const std::filesystem::path& folder, std::chrono::milliseconds patience);
  void end();

 private:
  std::mutex mutex_;
  int64_t num_begun_ = 0;
  Descriptor file_;
};

}  // namespace titan::core
