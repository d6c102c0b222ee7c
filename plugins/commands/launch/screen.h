// Buffers the launcher's standard output and standard error. Lines of ranks and launcher stay in
// order, and writing never blocks, so signals are served while a terminal is paused. Used by
// rank_output.cpp and rank_group.cpp.
#pragma once

#include <string>
#include <string_view>

#include <titan/shown_text.h>

namespace titan::launching {

/// One stream. Text waits here until the descriptor takes it. When the reader is gone, text is
/// dropped; the log files have it.
class ScreenStream {
 public:
  explicit ScreenStream(int descriptor) : descriptor_(descriptor) {}

  void add(std::string_view text) {
    if (!is_lost_) waiting_ += text;
  }
  int descriptor() const { return descriptor_; }
  bool has_waiting() const { return taken_ < waiting_.size(); }
  /// So much text waits that its sources should not be read for now.
  bool is_full() const { return waiting_.size() - taken_ > kFull; }
  /// Writes as much as poll promised without blocking.
  void write_some();

 private:
  static constexpr size_t kFull = 1 << 20;

  int descriptor_;
  std::string waiting_;
  size_t taken_ = 0;  ///< bytes of `waiting_` that are written
  bool is_lost_ = false;
};

struct Screen {
  ScreenStream output, errors;

  Screen(int output_descriptor, int error_descriptor)
      : output(output_descriptor), errors(error_descriptor) {}

  /// A line of the launcher itself: "titan launch: ...".
  void say(std::string_view line) {
    errors.add("titan launch: ");
    errors.add(printable_message(line));
    errors.add("\n");
  }
  /// Waits until everything is written, or until `interrupt` is readable.
  void flush(int interrupt);
};

}  // namespace titan::launching
