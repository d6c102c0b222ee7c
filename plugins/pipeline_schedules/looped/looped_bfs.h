// LoopedBFS, breadth-first pipeline parallelism: a rank runs all microbatches through its first
// stage before it starts its second, and back in reverse.
// Lamy-Poirier, 2022, arXiv:2211.05953.
#pragma once

#include <titan/pipeline_schedule.h>

namespace titan::pipeline_schedules {

/// Same bubble as Interleaved1F1B; keeps all M activations of each stage. A stage's weights are
/// used for M microbatches in a row, so sharded weights are gathered once per forward and once per
/// backward.
class LoopedBfs final : public PipelineSchedule {
 public:
  explicit LoopedBfs(PipelineScheduleContext) {}

  int default_num_stages(int num_ranks) const override { return 2 * num_ranks; }
  std::optional<std::string> problem(const PipelineShape& shape) const override;
  PipelineTable plan(const PipelineShape& shape) const override;
};

}  // namespace titan::pipeline_schedules
