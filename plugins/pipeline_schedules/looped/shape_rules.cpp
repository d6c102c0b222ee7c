// See shape_rules.h.
#include "shape_rules.h"

namespace titan::pipeline_schedules {

std::optional<std::string> needs_one_stage_per_rank(const PipelineShape& shape) {
  if (shape.stages_per_rank() == 1) return std::nullopt;
  return "needs exactly 1 stage per rank, but there are " + std::to_string(shape.stages_per_rank());
}

std::optional<std::string> needs_several_stages_per_rank(const PipelineShape& shape) {
  if (shape.stages_per_rank() >= 2) return std::nullopt;
  return "needs at least 2 stages per rank, but there are " +
         std::to_string(shape.stages_per_rank());
}

}  // namespace titan::pipeline_schedules
