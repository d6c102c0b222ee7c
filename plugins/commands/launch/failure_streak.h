// Counts failures of a job that repeat without progress, so that `titan launch` does not restart
// into the same failure for ever. Used by plugin.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rank_group.h"

namespace titan::launching {

/// Where a failed job stood.
struct FailedAt {
  std::optional<int64_t> step;  ///< the training step of the failure
  bool is_exact = false;     ///< the rank's own error names the step; otherwise it is about right
  std::string newest_save;   ///< identifies the newest complete checkpoint; empty: none
  int64_t newest_local = 0;  ///< the newest step with a local checkpoint on this host
};

/// What repeated failures have in common: the signal or exit code, and the first line of the error
/// without numbers. Words that contain a digit count as numbers.
std::string cause_of(const RankFailure& failure);

/// "rank 1 at step 16 ended with exit code 1: error: ..."
std::string to_text(const RankFailure& failure, const FailedAt& at);

class FailureStreak {
 public:
  /// Returns how many failures in a row, this one included, had the same cause at the same step
  /// while no checkpoint became complete. Steps are compared only where both errors name theirs.
  int add(const RankFailure& failure, const FailedAt& at);
  /// The next failure counts as the first.
  void reset() { count_ = count_of_rank_ = 0; }
  /// Whether a checkpoint became complete before the last failure and after the one before it.
  bool has_progressed() const { return has_progressed_; }
  /// Failures in a row of any cause in which no checkpoint became complete and this rank failed
  /// first.
  int num_of_rank() const { return count_of_rank_; }

 private:
  int count_ = 0, count_of_rank_ = 0, rank_ = -1;
  bool is_first_ = true, has_progressed_ = false;
  std::string cause_;
  int64_t best_local_ = 0;
  FailedAt at_;
};

}  // namespace titan::launching
