// What the looped schedules ask of a shape, and which stage of the model a rank's n-th is.
#pragma once

#include <optional>
#include <string>

#include <titan/pipeline_schedule.h>

namespace titan::pipeline_schedules {

std::optional<std::string> needs_one_stage_per_rank(const PipelineShape& shape);
std::optional<std::string> needs_several_stages_per_rank(const PipelineShape& shape);

/// Stage `local` of `rank`, counted over the model.
inline int looped_stage(const PipelineShape& shape, int rank, int local) {
  return local * shape.num_ranks + rank;
}

}  // namespace titan::pipeline_schedules
