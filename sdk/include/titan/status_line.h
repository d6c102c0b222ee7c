// A line at the bottom of a terminal that is redrawn in place, such as the progress of a run. Log
// lines (titan/log.h) and the status line do not overwrite each other. No torch.
#pragma once

#include <string>
#include <string_view>

#include <titan/export.h>

namespace titan {

/// While one exists, a log line to the same terminal erases it and redraws it below. At most one
/// exists in a process. Any thread.
class TITAN_API StatusLine {
 public:
  /// `descriptor` is that of a terminal and stays open. Draws nothing yet.
  explicit StatusLine(int descriptor);
  /// Erases the line.
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;

  /// Replaces the line with `text`: one line, shorter than the terminal is wide, printable except
  /// for colours; empty erases. Throws an io Error if it cannot write to the terminal.
  void draw(std::string text);
  /// Writes whole lines above the status line. Throws likewise.
  void write_above(std::string_view lines);
  /// The terminal's current width in columns; 0: unknown.
  int columns() const;

  /// The text that erases a status line on the terminal of standard error; empty if there is none.
  /// For code that writes there without titan/log.h because it may not lock, such as signal
  /// handlers.
  static const char* eraser() noexcept;

 private:
  const int descriptor_;
};

}  // namespace titan
