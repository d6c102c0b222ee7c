// The line at the bottom of a terminal that is drawn again and again, such as the progress of a
// run. It and log lines (titan/log.h) leave each other whole. No torch.
#pragma once

#include <string>
#include <string_view>

#include <titan/export.h>

namespace titan {

/// While one lives, a log line to the same terminal erases it and draws it again below. At most one
/// lives in a process. Any thread.
class TITAN_API StatusLine {
 public:
  /// `descriptor` is that of a terminal, and stays open. Draws nothing.
  explicit StatusLine(int descriptor);
  /// Erases what it has drawn.
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;

  /// Draws `text` where the last one was. One line, shorter than the terminal is wide, printable
  /// but for colours; empty erases. Throws an io Error when the terminal does not take it.
  void draw(std::string text);
  /// Whole lines, above it. Throws likewise.
  void write_above(std::string_view lines);
  /// The terminal's width right now in columns; 0 = it does not tell.
  int columns() const;

  /// What erases it where one is on the terminal behind standard error, else empty: for who writes
  /// there without titan/log.h because it may take no lock. Safe in a signal handler.
  static const char* eraser() noexcept;

 private:
  const int descriptor_;
};

}  // namespace titan
