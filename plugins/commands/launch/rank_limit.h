// Chooses the number of ranks of each start of `titan launch --ranks MIN:MAX`. Used by plugin.cpp.
#pragma once

#include <map>
#include <string>

#include "failure_streak.h"
#include "launch_plan.h"
#include "screen.h"

namespace titan::launching {

/// A start takes as many ranks as can start, and as the layout allows. The command of --available
/// says how many can start. Without it all can, until one rank fails first twice in a row while no
/// checkpoint becomes complete. That rank is then left out until one does, if fewer ranks fit.
class RankLimit {
 public:
  explicit RankLimit(const LaunchPlan& plan) : can_start_(plan.most_ranks) {}

  /// Sets plan.ranks_here for the next start. `streak`: of the failures so far; begins anew when
  /// the number changes. Throws a config Error if the layout allows no number from MIN to the
  /// number that can start, an io Error if the command of --available fails.
  void choose(LaunchPlan& plan, FailureStreak& streak, Screen& screen);

 private:
  int num_that_can_start(const LaunchPlan& plan, const FailureStreak& streak) const;
  const std::string& problem_of(const LaunchPlan& plan, int num_ranks);

  int can_start_;
  bool has_started_ = false;
  std::map<int, std::string> problems_;  ///< by number of ranks; empty: the layout allows it
};

}  // namespace titan::launching
