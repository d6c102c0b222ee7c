// Goodput: how much of the time of a run was spent on training steps that were
// kept, and what took the rest. Used by the trainer for its scalar, by titan
// report and titan top.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <titan/export.h>
#include <titan/runs/event.h>

namespace titan {

/// What takes time and leaves no step that is kept.
enum class LostTime {
  startup,     ///< from the first start of the program to its first step
  restart,     ///< from the end of a session, or its last sign of life, to the next
               ///< one's first step
  repeated,    ///< steps that a restart threw away: done again, or to be done again
  checkpoint,  ///< training was held by a save
  validation,  ///< with all that is in it
  hang,        ///< from the last progress of a session to the error that ended it
  other,       ///< whatever no event tells about: closing down
};
inline constexpr size_t kNumLostTimes = 7;

/// "steps thrown away": as people are shown it.
TITAN_API const char* to_string(LostTime cause);

/// Seconds; `total()` is the time from the first event to the last one.
struct TITAN_API GoodputSeconds {
  double productive = 0;
  std::array<double, kNumLostTimes> lost{};  ///< by LostTime

  double& of(LostTime cause) { return lost[static_cast<size_t>(cause)]; }
  double of(LostTime cause) const { return lost[static_cast<size_t>(cause)]; }
  double total() const;
  /// Productive of total, in [0, 1]; 0 when no time has passed.
  double share() const;
};

/// One start of the program.
struct RunSession {
  enum class End { none, finished, stopped, failed };  ///< none: killed, or still running

  double begin = 0, end = 0;    ///< seconds since 1970; end: of its last event
  double first_step_begin = 0;  ///< 0: no step was done. At the latest: when the first was done
  int64_t resumed_step = 0;
  int64_t last_step = 0;  ///< the last one that an event tells of
  End outcome = End::none;
  std::string error;
  GoodputSeconds seconds;  ///< from the end of the session before to the end of this one
};

/// Takes events one at a time, at a cost that does not grow with the length of
/// the run.
///
/// Productive is the time of a steps event without checkpoints and validations,
/// and the time up to a checkpoint or validation that no steps event follows.
/// When a later session resumes from an earlier step, what was spent on the
/// steps behind that one becomes `repeated`; of an interval across it the share
/// of its steps. Steps behind the last event of a session that ended well count
/// at the pace of its last steps event, within the time that there was.
class TITAN_API GoodputMeter {
 public:
  /// In the order of history.jsonl. Events before the first start are ignored;
  /// a clock that was set back counts as no time.
  void add(const RunEvent& event);
  /// No event follows, or none soon: what happened since the last steps event
  /// counts too.
  void settle();

  GoodputSeconds seconds() const;
  const std::vector<RunSession>& sessions() const { return sessions_; }

 private:
  struct Interval {  // steps that are kept
    int64_t from = 0, to = 0;
    double seconds = 0;
    size_t session = 0;
  };
  struct Unsettled {  // since the last steps event
    double time = 0;  // of the last event; 0: none
    int64_t step = 0;
    double checkpoint = 0, validation = 0;
  };
  void start(const RunEvent& event);
  void take_steps(const RunEvent& event);
  void end(const RunEvent& event);
  void begin_steps(double time);
  double pass_until(double time);
  LostTime setting_up() const;
  int64_t counted_step() const;
  void keep(int64_t from, int64_t to, double seconds);
  void throw_away_after(int64_t step);

  std::vector<RunSession> sessions_;
  std::vector<Interval> kept_;  // rising
  Unsettled unsettled_;
  double counted_until_ = 0;     // seconds since 1970
  double first_step_done_ = 0;   // of this session; 0: not told
  double seconds_per_step_ = 0;  // of the last steps event of this session
};

/// Of a whole history, settled.
TITAN_API GoodputMeter measure_goodput(const std::vector<RunEvent>& events);

}  // namespace titan
