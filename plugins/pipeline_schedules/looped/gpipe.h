// GPipe: every rank runs all forwards, then all backwards, both in the order of the microbatches.
// Huang et al., 2019, arXiv:1811.06965.
#pragma once

#include <titan/pipeline_schedule.h>

namespace titan::pipeline_schedules {

/// Idle share (P - 1) / (M + P - 1) for P ranks and M microbatches; keeps M activations.
class GPipe final : public PipelineSchedule {
 public:
  explicit GPipe(PipelineScheduleContext) {}

  int default_num_stages(int num_ranks) const override { return num_ranks; }
  std::optional<std::string> problem(const PipelineShape& shape) const override;
  PipelineTable plan(const PipelineShape& shape) const override;
};

}  // namespace titan::pipeline_schedules
