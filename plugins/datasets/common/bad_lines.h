// Counts the lines of a file that were passed over, and tells once. Used by the data sets of JSON
// lines.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include <titan/log.h>

namespace titan::datasets {

/// Warns when it goes, if it counted any and nobody warned about this file before.
class BadLines {
 public:
  /// `is_told` is shared by all who read the file.
  BadLines(std::string file, std::atomic<bool>& is_told)
      : file_(std::move(file)), is_told_(is_told) {}
  BadLines(const BadLines&) = delete;
  ~BadLines() {
    if (count_ == 0 || is_told_.exchange(true)) return;
    log::warn("passed over " + std::to_string(count_) + (count_ == 1 ? " line" : " lines") +
              " of '" + file_ + "' that " + (count_ == 1 ? "is" : "are") +
              " no document (skip_bad_lines); the first is " + first_);
  }

  void add(int64_t line_number, const std::string& reason) {
    if (++count_ == 1) first_ = "line " + std::to_string(line_number) + ": " + reason;
  }

 private:
  std::string file_;
  std::atomic<bool>& is_told_;
  int64_t count_ = 0;
  std::string first_;
};

}  // namespace titan::datasets
