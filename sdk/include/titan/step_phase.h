// Where the time of the trainer goes: forward, backward, waiting for others, the optimizer. Told by
// whoever runs it, as a scope; read by metrics, profiles and by whoever asks what a rank is doing.
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
  other,          ///< whatever nobody has named
  data,           ///< waiting for batches
  forward,        ///<
  backward,       ///< with what is computed again in it
  communication,  ///< starting collectives and waiting for them, wherever that is
  optimizer,      ///< judging, clipping, updating
  checkpoint,     ///< held by a save; with all that is inside
  validation,     ///< with all that is inside
};
inline constexpr size_t kNumPhases = 8;

/// "forward".
TITAN_API std::string_view name_of(StepPhase phase);

/// A labelled scope that has ended. Times in seconds on the monotonic clock.
struct PhaseSpan {
  StepPhase phase = StepPhase::other;
  std::string name;
  double begin = 0, end = 0;
  double waited = 0;  ///< of it, in communication
};

/// Seconds of the host by phase. Each moment counts for one phase, the innermost; a checkpoint and
/// a validation count whole. On a GPU, whose work the host only starts, the wait for it counts
/// where the host waits. Thread-safe.
class TITAN_API StepClock {
 public:
  using Seconds = std::array<double, kNumPhases>;  ///< by StepPhase

  StepClock();
  /// Since the clock was made; the sum is the time since then.
  Seconds seconds() const;
  /// What counts right now, and since when on the monotonic clock.
  StepPhase current() const;
  double current_since() const;

  /// From now on spans are kept for `take_spans`, at most kMostSpans of them.
  void keep_spans(bool keeps);
  bool keeps_spans() const;
  /// Those that ended since the last call, in the order of their ends.
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
  double since_ = 0;  // of what counts now
  bool keeps_spans_ = false;
  std::vector<PhaseSpan> spans_;
};

/// While alive, time of `recorder`'s clock counts for `phase`. With a label it is also what the
/// rank is working on (Recorder::activity), which an exception leaves standing, and a span. While a
/// torch profiler records, it stands in the profile. Thread: trainer thread, nested.
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
  std::unique_ptr<Profiled> profiled_;  // null while nobody profiles
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
