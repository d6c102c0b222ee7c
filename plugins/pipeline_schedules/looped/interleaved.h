// Interleaved schedules: 1F1B over several stages per rank, with a whole backward or one split in
// two. Both run microbatches in rounds of at least P, so M need not be a multiple of P.
#pragma once

#include <titan/pipeline_schedule.h>

namespace titan::pipeline_schedules {

/// Interleaved 1F1B. Narayanan et al., 2021, arXiv:2104.04473. The bubble of 1F1B divided by the
/// stages per rank.
class Interleaved1F1B final : public PipelineSchedule {
 public:
  explicit Interleaved1F1B(PipelineScheduleContext) {}

  int default_num_stages(int num_ranks) const override { return 2 * num_ranks; }
  std::optional<std::string> problem(const PipelineShape& shape) const override;
  PipelineTable plan(const PipelineShape& shape) const override;
};

/// ZB1P of Qi et al., 2023, arXiv:2401.10241, over several stages per rank: half the warmup of
/// Interleaved1F1B, and weight gradients deferred to times when a rank would idle.
class InterleavedZeroBubble final : public PipelineSchedule {
 public:
  explicit InterleavedZeroBubble(PipelineScheduleContext) {}

  int default_num_stages(int num_ranks) const override { return 2 * num_ranks; }
  std::optional<std::string> problem(const PipelineShape& shape) const override;
  PipelineTable plan(const PipelineShape& shape) const override;
};

}  // namespace titan::pipeline_schedules
