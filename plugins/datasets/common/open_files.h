// A bounded number of open files out of any number. Used by the data sets that read files in any
// order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "plugins/datasets/common/input_file.h"

namespace titan::datasets {

/// Keeps the files that were read last open. Filled by one thread, then read by any number.
class OpenFiles {
 public:
  static constexpr size_t kMaxOpen = 64;

  explicit OpenFiles(size_t max_open = kMaxOpen) : max_open_(max_open) {}

  /// The file's number: 0, 1, ... `num_bytes`: its size when the data set was opened.
  size_t add(std::filesystem::path path, uint64_t num_bytes);
  /// [any thread] File `file`, opened if it is not. It stays open as long as somebody holds it.
  /// Throws an io Error when its size has changed.
  std::shared_ptr<const InputFile> open(size_t file) const;

  const std::filesystem::path& path(size_t file) const { return files_[file].path; }
  uint64_t num_bytes(size_t file) const { return files_[file].num_bytes; }
  size_t size() const { return files_.size(); }

 private:
  struct File {
    std::filesystem::path path;
    uint64_t num_bytes = 0;
    std::shared_ptr<const InputFile> opened;  // null while it is closed
    std::list<size_t>::iterator use;          // where it stands in uses_ while it is open
  };

  size_t max_open_;
  mutable std::mutex mutex_;  // of `opened`, `use` and uses_
  mutable std::vector<File> files_;
  mutable std::list<size_t> uses_;  // the open files, the last used one first
};

}  // namespace titan::datasets
