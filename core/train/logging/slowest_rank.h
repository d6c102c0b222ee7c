// Which rank the others wait for, and what it costs. Used by metrics at logged steps.
#pragma once

#include <cstdint>
#include <vector>

#include <titan/dist/group.h>
#include <titan/logger.h>
#include <titan/step_phase.h>

namespace titan::core {

/// A rank's work is its time but for what it spends in communication: the one with the most is
/// waited for by the others. Compared with the lower median, over host time: of a GPU, which works
/// while the host goes on, it says nothing. Thread: trainer thread.
class SlowestRank {
 public:
  /// Warned of when one rank costs so much of the time over so long, logged step after logged step.
  static constexpr double kShare = 0.1;
  static constexpr double kWindowSeconds = 30;
  static constexpr int kWindowIntervals = 3;

  /// Collective over `world`. `own`: of this rank since the last call. Gives
  /// "time_metrics/slowest_rank", and in "time_metrics/slowest_rank_excess(%)" what its work is
  /// over the median's, of the time.
  std::vector<Scalar> look(const StepClock::Seconds& own, const dist::Group& world,
                           c10::Device device);

 private:
  struct Finding {
    int64_t rank = 0;
    double excess = 0;                   // seconds over the median's work
    double time = 0;                     // of the interval
    StepPhase phase = StepPhase::other;  // where it is furthest from the median rank
  };
  static Finding find(const std::vector<StepClock::Seconds>& ranks);
  void warn_if_lasting(const Finding& finding, bool speaks);

  int64_t rank_ = -1;  // of the window
  int num_intervals_ = 0;
  double window_seconds_ = 0, window_excess_ = 0;
  bool has_warned_ = false;  // in this window
};

}  // namespace titan::core
