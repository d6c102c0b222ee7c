// history.jsonl: the events of a run over all its sessions (a session is one start of the program),
// appended by rank 0. Read by titan report, titan top and goodput measurements.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <titan/value.h>

#include <titan/export.h>

namespace titan {

/// One line. Times are seconds since 1970. Fields that a kind does not have keep their defaults.
struct TITAN_API RunEvent {
  enum class Kind {
    start,       ///< of a session; `step`: the last completed step
    first_step,  ///< the first step of the session is complete
    steps,  ///< steps `from` to `to` were completed since the previous steps event, or since the
            ///< first step began
    validation,  ///< of `step`, took `seconds`
    checkpoint,  ///< of `step`; blocked training for `seconds`
    undone,  ///< an attempt of `step` did not change the weights: it is repeated, or the step is
             ///< skipped
    end,     ///< of a session; missing if it was killed. `step`: the last completed step
  };
  enum class Outcome { finished, stopped, failed };

  Kind kind = Kind::start;
  double time = 0;
  int64_t step = 0;
  int64_t from = 0, to = 0;
  double seconds = 0;
  std::vector<std::pair<std::string, double>> phases;  ///< of steps: "forward", 1.5
  int64_t attempt = 0;                                 ///< of undone, from 1
  bool is_skipped = false;                             ///< of undone; otherwise it is repeated
  std::string reason;                   ///< of undone; empty: see the log of the ranks
  Outcome outcome = Outcome::finished;  ///< of end
  std::string error;                    ///< of end
  Value details;                        ///< of start: the whole object

  /// Sum of the seconds of `phases`.
  double phase_total() const;
  /// Seconds of the phase `name`; 0 if there is none.
  double phase(std::string_view name) const;
};

/// "finished"
TITAN_API const char* to_string(RunEvent::Outcome outcome);

/// `line` as an event; absent for an unknown kind. Throws a data Error if a line is not JSON, or if
/// a member is missing or has the wrong type.
TITAN_API std::optional<RunEvent> parse_event(std::string_view line);

struct RunHistory {
  std::vector<RunEvent> events;
  int64_t num_unreadable = 0;  ///< malformed lines: truncated by a kill, or damaged
};

/// Parses all lines of `text`, except a last line without a line end.
TITAN_API RunHistory parse_history(std::string_view text);
/// From `run_folder`/history.jsonl; empty if there is none. Throws an io Error if it cannot be
/// read.
TITAN_API RunHistory read_history(const std::filesystem::path& run_folder);

}  // namespace titan
