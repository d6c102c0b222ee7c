// Counts the skipped lines of a file and warns once. Used by the data sets of JSON lines.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include <titan/log.h>

namespace titan::datasets {

/// Its destructor warns if it counted any and no other reader has warned about this file.
class BadLines {
 public:
  /// `is_told`: set once warned; shared by all readers of the file.
  BadLines(std::string file, std::atomic<bool>& is_told)
      : file_(std::move(file)), is_told_(is_told) {}
  BadLines(const BadLines&) = delete;
  ~BadLines() {
    if (count_ == 0 || is_told_.exchange(true)) return;
    log::warn("skipped " + std::to_string(count_) + (count_ == 1 ? " line" : " lines") + " of '" +
              file_ + "' that " + (count_ == 1 ? "is" : "are") +
              " not valid (skip_bad_lines); the first is " + first_);
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
