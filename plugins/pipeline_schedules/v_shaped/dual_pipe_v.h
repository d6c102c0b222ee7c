// DualPipeV: in its steady part a rank runs the forward of one of its stages and the backward of
// the other as a pair, so that each overlaps with the other's communication.
// DeepSeek-AI, 2024, arXiv:2412.19437 (DualPipe); https://github.com/deepseek-ai/DualPipe (the V).
#pragma once

#include <titan/pipeline_schedule.h>

namespace titan::pipeline_schedules {

/// Needs M >= 2P. On every rank keeps the activations of P + 1/2 microbatches of the whole rank.
class DualPipeV final : public PipelineSchedule {
 public:
  explicit DualPipeV(PipelineScheduleContext) {}

  int default_num_stages(int num_ranks) const override { return 2 * num_ranks; }
  std::optional<std::string> problem(const PipelineShape& shape) const override;
  PipelineTable plan(const PipelineShape& shape) const override;
};

}  // namespace titan::pipeline_schedules
