// What a pipeline's plan costs: when each action runs, how long ranks idle, how many activations
// they keep. Used by `titan describe pipeline_schedule` and the timelines.
#pragma once

#include <vector>

#include <titan/pipeline_schedule.h>

#include <titan/export.h>

namespace titan {

/// How long the actions of one stage take, in any unit; all > 0. A whole backward takes input_grad
/// + weight_grad. Sending takes no time, and a pair that overlaps takes what its halves take.
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

/// One rank over the whole step, which lasts from the first action of any rank to the last of any.
struct RankUse {
  double busy = 0;
  double bubble = 0;      ///< share of the step in which the rank idles
  double inner_idle = 0;  ///< time in which it idles between its own first and last action
  /// Most microbatches of single stages whose forward has started and whose backward (B, or W) has
  /// not ended; a rank of v stages keeps v of them for one microbatch of its whole share.
  int peak_activations = 0;
  /// The same, counted until the I instead of the W: what is kept for the W alone is left out.
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

/// Every action starts as soon as its rank is free and what it needs is there; the two of a pair
/// start when both can.
TITAN_API PipelineAnalysis analyze(const PipelinePlan& plan, const ActionCosts& costs);

}  // namespace titan
