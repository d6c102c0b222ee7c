// 1F1B: the last rank starts its first backward right after its first forward, and earlier ranks
// keep only the microbatches that are in flight until then.
// Narayanan et al., 2019, doi:10.1145/3341301.3359646; Narayanan et al., 2021, arXiv:2104.04473.
#pragma once

#include <titan/pipeline_schedule.h>

namespace titan::pipeline_schedules {

/// Same idle share as GPipe; rank p keeps at most P - p activations.
class OneForwardOneBackward final : public PipelineSchedule {
 public:
  explicit OneForwardOneBackward(PipelineScheduleContext) {}

  int default_num_stages(int num_ranks) const override { return num_ranks; }
  /// Needs at least as many microbatches as stages: with fewer there is no steady part.
  std::optional<std::string> problem(const PipelineShape& shape) const override;
  PipelineTable plan(const PipelineShape& shape) const override;
};

}  // namespace titan::pipeline_schedules
