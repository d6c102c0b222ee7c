// Finds the rank that the others wait for, and its cost. Used by metrics at logged steps.
#pragma once

#include <cstdint>
#include <vector>

#include <titan/dist/group.h>
#include <titan/logger.h>
#include <titan/step_phase.h>

namespace titan::core {

/// A rank's work is its time without communication and validation; the others wait for the rank
/// with the most work. Compared with the lower median. It uses host time, which says nothing of a
/// GPU that works asynchronously. Thread: trainer thread.
class SlowestRank {
 public:
  /// A warning is logged when the same rank exceeds this share over this window of consecutive
  /// logged steps.
  static constexpr double kShare = 0.1;
  static constexpr double kWindowSeconds = 30;
  static constexpr int kWindowIntervals = 3;

  /// Collective over `world`. `own`: of this rank since the last call. Returns
  /// "time_metrics/slowest_rank" and, as "time_metrics/slowest_rank_excess(%)", the work above the
  /// median's as a share of the time.
  std::vector<Scalar> look(const StepClock::Seconds& own, const dist::Group& world,
                           c10::Device device);

 private:
  struct Finding {
    int64_t rank = 0;
    double excess = 0;                   // seconds over the median's work
    double time = 0;                     // of the interval
    StepPhase phase = StepPhase::other;  // with the largest excess over the median rank
  };
  static Finding find(const std::vector<StepClock::Seconds>& ranks);
  void warn_if_lasting(const Finding& finding, bool speaks);

  int64_t rank_ = -1;  // of the window
  int num_intervals_ = 0;
  double window_seconds_ = 0, window_excess_ = 0;
  bool has_warned_ = false;  // in this window
};

}  // namespace titan::core
