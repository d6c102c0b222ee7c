// Goodput: the share of a run's time that was spent on training steps that were kept, and the
// causes of the rest. Used by the trainer for its scalar, by titan report and titan top.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <titan/export.h>
#include <titan/runs/event.h>

namespace titan {

/// The causes of time that contributes to no kept step.
enum class LostTime {
  startup,     ///< from the first start of the program to its first step
  restart,     ///< from the end of a session, or its last event, to the next session's first step
  repeated,    ///< steps that a restart discarded, which are repeated or will be
  checkpoint,  ///< a save blocked training
  validation,  ///< including all phases inside it
  replicas,    ///< finding other replica groups, taking over state, waiting for their votes
  hang,        ///< from the last progress of a session to the error that ended it
  other,       ///< without an event that explains it: closing down
};
inline constexpr size_t kNumLostTimes = 8;

/// "steps thrown away": for display.
TITAN_API const char* to_string(LostTime cause);

/// Seconds; `total()` is the time from the first event to the last.
struct TITAN_API GoodputSeconds {
  double productive = 0;
  std::array<double, kNumLostTimes> lost{};  ///< by LostTime

  double& of(LostTime cause) { return lost[static_cast<size_t>(cause)]; }
  double of(LostTime cause) const { return lost[static_cast<size_t>(cause)]; }
  double total() const;
  /// productive / total, in [0, 1]; 0 if no time has passed.
  double share() const;
};

/// One start of the program.
struct RunSession {
  enum class End { none, finished, stopped, failed };  ///< none: killed, or still running

  double begin = 0, end = 0;    ///< seconds since 1970; end: of its last event
  double first_step_begin = 0;  ///< 0: no step completed; at most the end of the first step
  int64_t resumed_step = 0;
  int64_t last_step = 0;  ///< the last step of any event
  End outcome = End::none;
  std::string error;
  GoodputSeconds seconds;  ///< from the end of the previous session to the end of this one
};

/// Processes events one at a time; the cost per event does not depend on the length of the run.
///
/// Productive time is the time of a steps event without checkpoints, validations and waits for
/// replica groups, and the time up to a checkpoint or validation that no steps event follows. If a
/// later session resumes from an earlier step, the time of all later steps becomes `repeated`. An
/// interval that spans that step is split in proportion to its steps. If a session ended well,
/// steps after its last steps event count with the mean time per step of that event, within the
/// available time.
class TITAN_API GoodputMeter {
 public:
  /// In the order of history.jsonl. Events before the first start are ignored. If the clock was set
  /// back, no time passes.
  void add(const RunEvent& event);
  /// No event follows, or none soon: also counts the time since the last steps event.
  void settle();

  GoodputSeconds seconds() const;
  const std::vector<RunSession>& sessions() const { return sessions_; }

 private:
  struct Interval {  // kept steps
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
  double first_step_done_ = 0;   // of this session; 0: unknown
  double seconds_per_step_ = 0;  // of the last steps event of this session
};

/// Of a whole history, settled.
TITAN_API GoodputMeter measure_goodput(const std::vector<RunEvent>& events);

}  // namespace titan
