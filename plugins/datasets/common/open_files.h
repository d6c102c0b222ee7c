// LRU cache that keeps at most `max_open` of any number of files open. Used by the data sets that
// read files in any order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "plugins/datasets/common/input_file.h"

namespace titan::datasets {

/// Filled by one thread, then read by any number.
class OpenFiles {
 public:
  static constexpr size_t kMaxOpen = 64;

  explicit OpenFiles(size_t max_open = kMaxOpen) : max_open_(max_open) {}

  /// Returns the file's number: 0, 1, ... `num_bytes`: its size when the data set was opened.
  size_t add(std::filesystem::path path, uint64_t num_bytes);
  /// [any thread] Opens file `file` if it is closed. It stays open at least while the result lives.
  /// Throws an io Error if its size has changed.
  std::shared_ptr<const InputFile> open(size_t file) const;

  const std::filesystem::path& path(size_t file) const { return files_[file].path; }
  uint64_t num_bytes(size_t file) const { return files_[file].num_bytes; }
  size_t size() const { return files_.size(); }

 private:
  struct File {
    std::filesystem::path path;
    uint64_t num_bytes = 0;
    std::shared_ptr<const InputFile> opened;  // null while it is closed
    std::list<size_t>::iterator use;          // its place in uses_ while it is open
  };

  size_t max_open_;
  mutable std::mutex mutex_;  // guards `opened`, `use` and uses_
  mutable std::vector<File> files_;
  mutable std::list<size_t> uses_;  // the open files, most recently used first
};

}  // namespace titan::datasets
