// ZB-V: split backwards, and stages in a V so that the last stage is on the first rank.
// Qi et al., 2023, arXiv:2401.10241, section 6.
#pragma once

#include <titan/pipeline_schedule.h>

namespace titan::pipeline_schedules {

/// No idle time between a rank's first and last action if forward, input gradient and weight
/// gradient take the same time and there are at least 2P - 1 microbatches. Keeps the activations of
/// at most P microbatches of a whole rank, like the first rank of 1F1B. With fewer microbatches it
/// is the table for 2P - 1 without the missing ones.
class ZbvZeroBubble final : public PipelineSchedule {
 public:
  explicit ZbvZeroBubble(PipelineScheduleContext) {}

  int default_num_stages(int num_ranks) const override { return 2 * num_ranks; }
  std::optional<std::string> problem(const PipelineShape& shape) const override;
  PipelineTable plan(const PipelineShape& shape) const override;
};

}  // namespace titan::pipeline_schedules
