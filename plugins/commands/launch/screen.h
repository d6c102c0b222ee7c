// The launcher's own standard output and standard error: what ranks and launcher say there, in
// order and without ever waiting for a reader, so that signals are served while a terminal is
// paused. Used by rank_output.cpp and rank_group.cpp.
#pragma once

#include <string>
#include <string_view>

#include <titan/shown_text.h>

namespace titan::launching {

/// One stream. Text waits here until the descriptor takes it; when nobody can read it any more it
/// is dropped (the log files hold it).
class ScreenStream {
 public:
  explicit ScreenStream(int descriptor) : descriptor_(descriptor) {}

  void add(std::string_view text) {
    if (!is_lost_) waiting_ += text;
  }
  int descriptor() const { return descriptor_; }
  bool has_waiting() const { return taken_ < waiting_.size(); }
  /// So much waits that whoever fills this should not be read for now.
  bool is_full() const { return waiting_.size() - taken_ > kFull; }
  /// Writes what poll promised to take without blocking.
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

  /// What the launcher says itself: "titan launch: ...".
  void say(std::string_view line) {
    errors.add("titan launch: ");
    errors.add(printable_message(line));
    errors.add("\n");
  }
  /// Waits until everything is written, or until `interrupt` can be read.
  void flush(int interrupt);
};

}  // namespace titan::launching
