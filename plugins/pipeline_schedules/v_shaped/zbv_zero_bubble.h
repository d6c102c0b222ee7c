// ZB-V: backward in two halves, and stages as a V so that the last stage lies on the first rank.
// Qi et al., 2023, arXiv:2401.10241, section 6.
#pragma once

#include <titan/pipeline_schedule.h>

namespace titan::pipeline_schedules {

/// No idle time between a rank's first and last action when forward, input gradient and weight
/// gradient take the same time and there are at least 2P - 1 microbatches; keeps at most P
/// activations of a whole rank, as 1F1B's first rank. With fewer microbatches it is the table for
/// 2P - 1 without the ones that are not there.
class ZbvZeroBubble final : public PipelineSchedule {
 public:
  explicit ZbvZeroBubble(PipelineScheduleContext) {}

  int default_num_stages(int num_ranks) const override { return 2 * num_ranks; }
  std::optional<std::string> problem(const PipelineShape& shape) const override;
  PipelineTable plan(const PipelineShape& shape) const override;
};

}  // namespace titan::pipeline_schedules
