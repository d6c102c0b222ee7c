// Simulates a pipeline's plan: when each action runs, how long ranks idle, how many activations
// they hold. Used by `titan describe pipeline_schedule` and the timelines.
#pragma once

#include <vector>

#include <titan/pipeline_schedule.h>

#include <titan/export.h>

namespace titan {

/// Durations of the actions of one stage, in any unit; all > 0. A whole backward takes input_grad +
/// weight_grad. Sends take no time, and an overlapped pair takes the sum of its halves.
struct TITAN_API ActionCosts {
  double forward = 1;
  double input_grad = 1;
  double weight_grad = 1;

  double of(PipelineAction::Kind kind) const;
};

struct TimedAction {
  PipelineAction action;
  double start = 0;
  double end = 0;
};

/// One rank over the whole step, from the first action of any rank to the last of any rank.
struct RankUse {
  double busy = 0;
  double bubble = 0;      ///< share of the step in which the rank idles
  double inner_idle = 0;  ///< time for which it idles between its own first and last action
  /// Maximum number of microbatches of single stages whose forward has started and whose backward
  /// (B, or W) has not ended. A rank with v stages holds v of them per microbatch.
  int peak_activations = 0;
  /// The same, but counted until I instead of W: without the tensors that only W needs.
  int peak_until_input_grad = 0;
};

struct TITAN_API PipelineAnalysis {
  PipelineShape shape;
  ActionCosts costs;
  double makespan = 0;
  std::vector<std::vector<TimedAction>> timeline;  ///< per rank; F, B, I, W
  std::vector<RankUse> ranks;

  double mean_bubble() const;
};

/// Every action starts as soon as its rank is free and its inputs are available; the two actions of
/// a pair start when both can.
TITAN_API PipelineAnalysis analyze(const PipelinePlan& plan, const ActionCosts& costs);

}  // namespace titan
