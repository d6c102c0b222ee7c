// history.jsonl: what happened to a run, appended to by rank 0 over all its
// sessions (a session is one start of the program). Read by titan report, titan
// top and whoever asks for goodput.
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

/// One line. Times are seconds since 1970. What a kind does not have is left as
/// it is here.
struct TITAN_API RunEvent {
  enum class Kind {
    start,       ///< of a session; `step`: the last step that was done before
    first_step,  ///< the first step of the session was done
    steps,       ///< `from` to `to` were done since the steps event before, or since
                 ///< the first began
    validation,  ///< of `step`, took `seconds`
    checkpoint,  ///< of `step`, held training for `seconds`
    end,         ///< of a session; none when it was killed. `step`: the last one done
  };
  enum class Outcome { finished, stopped, failed };

  Kind kind = Kind::start;
  double time = 0;
  int64_t step = 0;
  int64_t from = 0, to = 0;
  double seconds = 0;
  std::vector<std::pair<std::string, double>> phases;  ///< of steps: "forward", 1.5
  Outcome outcome = Outcome::finished;                 ///< of end
  std::string error;                                   ///< of end
  Value details;                                       ///< of start: the whole object

  /// Seconds of `phases` together.
  double phase_total() const;
  /// Seconds of the phase of that name; 0 when there is none.
  double phase(std::string_view name) const;
};

/// "finished"
TITAN_API const char* to_string(RunEvent::Outcome outcome);

/// `line` as an event; nothing for one of a kind that is not known here. Throws
/// a data Error for a line that is no JSON, or where a member is missing or of
/// a wrong type.
TITAN_API std::optional<RunEvent> parse_event(std::string_view line);

struct RunHistory {
  std::vector<RunEvent> events;
  int64_t num_unreadable = 0;  ///< lines that are none: torn by a kill, or damaged
};

/// All lines of `text`. A last line without an end is left out.
TITAN_API RunHistory parse_history(std::string_view text);
/// From `run_folder`/history.jsonl; empty when there is none. Throws an io
/// Error when it cannot be read.
TITAN_API RunHistory read_history(const std::filesystem::path& run_folder);

}  // namespace titan
