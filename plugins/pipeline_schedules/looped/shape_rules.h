// Shape requirements of the looped schedules, and the mapping from a rank's stages to the model's.
#pragma once

#include <optional>
#include <string>

#include <titan/pipeline_schedule.h>

namespace titan::pipeline_schedules {

std::optional<std::string> needs_one_stage_per_rank(const PipelineShape& shape);
std::optional<std::string> needs_several_stages_per_rank(const PipelineShape& shape);

/// Index in the model of stage `local` of `rank`.
inline int looped_stage(const PipelineShape& shape, int rank, int local) {
  return local * shape.num_ranks + rank;
}

}  // namespace titan::pipeline_schedules
