// Output of one rank: both streams, line by line, to its log file, to the screen if shown, and the
// last lines kept for a report. Used by rank_group.cpp.
#pragma once

#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <titan/program/child.h>
#include <titan/program/descriptor.h>

#include "screen.h"

namespace titan::launching {

class RankOutput {
 public:
  static constexpr size_t kNumLinesKept = 15;

  /// Opens the log: truncates it for the first `attempt`, appends for later ones. `shown_prefix`
  /// begins each line on the screen; absent: the rank is not shown. Throws an io Error when the
  /// file cannot be written.
  RankOutput(const std::filesystem::path& log, int attempt, Screen& screen,
             std::optional<std::string> shown_prefix);

  /// From now on the rank's streams are read.
  void attach(Descriptor output, Descriptor errors);

  /// Restart `attempt` begins: lines of it follow in the log, and earlier ones are not kept.
  void begin_restart(int attempt);
  /// From now on the streams of `other`, with lines that are incomplete, belong to this rank.
  void take_streams(RankOutput& other);

  /// The descriptor to poll; -1 when that stream has ended or the screen is full.
  int output_to_poll() const { return to_poll(output_); }
  int errors_to_poll() const { return to_poll(errors_); }
  void read_output() { read(output_); }
  void read_errors() { read(errors_); }

  /// The rank has exited: reads the rest, also incomplete lines, and closes its streams. Does not
  /// wait for other processes that hold the streams.
  void finish();

  bool is_shown() const { return shown_prefix_.has_value(); }
  const std::filesystem::path& log() const { return log_path_; }
  /// The last lines of both streams; long lines are truncated.
  const std::deque<std::string>& last_lines() const { return last_lines_; }
  /// The last line that begins with "error:", else the last line; empty without output.
  std::string last_words() const;

 private:
  struct Stream {
    Descriptor source;
    ScreenStream* target = nullptr;  ///< null: not shown
    std::string begun;               ///< an incomplete line
  };

  int to_poll(const Stream& stream) const;
  bool read(Stream& stream);
  void take_lines(Stream& stream, std::string_view lines);
  void write_log(std::string_view text);

  std::filesystem::path log_path_;
  Descriptor log_;
  Screen& screen_;
  std::optional<std::string> shown_prefix_;
  Stream output_, errors_;
  std::deque<std::string> last_lines_;
  std::string last_error_;
};

}  // namespace titan::launching
