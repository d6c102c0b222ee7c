// Writes to the program's standard output and standard error. All text goes through these functions
// and titan/log.h, which escape control sequences in names and values from files.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>

#include <titan/shown_text.h>

namespace titan {

inline void print_raw(std::string_view text, std::FILE* out) {
  std::fwrite(text.data(), 1, text.size(), out);
}

/// [at the start of a program] If standard output and standard error are the same pipe or file,
/// flushes standard output at each line end, so that lines of the two stay whole and in order.
inline void print_whole_lines() {
  struct stat out, errors;
  if (::fstat(STDOUT_FILENO, &out) == 0 && ::fstat(STDERR_FILENO, &errors) == 0 &&
      out.st_dev == errors.st_dev && out.st_ino == errors.st_ino)
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
}

/// Writes lines to standard output; `text` includes its line ends.
inline void print(std::string_view text) {
  print_raw(printable_lines(text), stdout);
}

/// Writes JSON to standard output.
inline void print_json(std::string_view json) {
  print_raw(printable_json(json), stdout);
}

/// Writes "error: ..." to standard error, with a line end.
inline void print_error(std::string_view message) {
  print_raw(printable_message("error: " + std::string(message)) + "\n", stderr);
}

/// Writes lines to standard error; `text` includes its line ends.
inline void print_to_errors(std::string_view text) {
  print_raw(printable_lines(text), stderr);
}

/// Replaces the current line of the terminal on standard error by `line`; empty clears it.
inline void redraw_line(std::string_view line) {
  print_raw("\r" + printable(line, line.npos) + "\033[K", stderr);
  std::fflush(stderr);
}

}  // namespace titan
