// Where the trainer spends its time: forward, backward, communication, the optimizer. The running
// code marks phases with scopes; metrics, profiles and reports of a rank's activity read them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <titan/export.h>

namespace titan {

namespace dist {
class Recorder;
}

enum class StepPhase {
  other,  ///< everything without a scope
  data,   ///< waiting for batches
  forward,
  backward,       ///< including recomputation
  communication,  ///< starting collectives and waiting for them, in any phase
  optimizer,      ///< judging, clipping, updating
  checkpoint,     ///< the time that a save blocks the step, including all nested phases
  validation,     ///< including all nested phases
  replicas,  ///< finding other replica groups, taking over state, waiting for votes: nested phases
             ///< included
};
inline constexpr size_t kNumPhases = 9;

/// "forward".
TITAN_API std::string_view name_of(StepPhase phase);

/// A labelled scope that has ended. Times in seconds on the monotonic clock.
struct PhaseSpan {
  StepPhase phase = StepPhase::other;
  std::string name;
  double begin = 0, end = 0;
  double waited = 0;  ///< part of it in communication
};

/// Host time by phase. Each moment counts for one phase: the innermost, or checkpoint,
/// validation or replicas if one of them encloses it. A GPU works asynchronously, so its time
/// counts in the phase in which the host waits for it. Thread-safe.
class TITAN_API StepClock {
 public:
  using Seconds = std::array<double, kNumPhases>;  ///< by StepPhase

  StepClock();
  /// Seconds by phase since construction. They sum to the total time since then.
  Seconds seconds() const;
  /// The current phase, and its start on the monotonic clock.
  StepPhase current() const;
  double current_since() const;

  /// From now on spans are collected for `take_spans`, at most kMostSpans of them.
  void keep_spans(bool keeps);
  bool keeps_spans() const;
  /// The spans that ended since the last call, ordered by their ends.
  std::vector<PhaseSpan> take_spans();
  static constexpr size_t kMostSpans = 20000;

 private:
  friend class PhaseScope;
  friend class WaitScope;
  void enter(StepPhase phase);
  void leave();
  void begin_wait();
  void end_wait();
  void keep(PhaseSpan span);
  double waited() const;
  StepPhase counted() const;
  void switch_from(StepPhase before);

  mutable std::mutex mutex_;
  std::vector<StepPhase> scopes_;  // innermost last
  int num_waits_ = 0;
  Seconds seconds_{};
  double since_ = 0;  // start of the current phase
  bool keeps_spans_ = false;
  std::vector<PhaseSpan> spans_;
};

/// While alive, time of `recorder`'s clock counts for `phase`. With a label it also sets the rank's
/// activity (Recorder::activity), which keeps the label after an exception, and records a span. It
/// appears in the profile of a running torch profiler. Thread: trainer thread, nested.
class TITAN_API PhaseScope {
 public:
  PhaseScope(dist::Recorder& recorder, StepPhase phase, std::string label = {});
  ~PhaseScope();
  PhaseScope(const PhaseScope&) = delete;

 private:
  struct Profiled;
  dist::Recorder& recorder_;
  StepPhase phase_;
  std::string label_, activity_before_;
  double begin_ = 0, waited_before_ = 0;
  int num_exceptions_;
  std::unique_ptr<Profiled> profiled_;  // null without a running profiler
};

/// While alive, time counts as communication. Any thread.
class TITAN_API WaitScope {
 public:
  explicit WaitScope(dist::Recorder& recorder);
  ~WaitScope();
  WaitScope(const WaitScope&) = delete;

 private:
  StepClock& clock_;
};

}  // namespace titan
