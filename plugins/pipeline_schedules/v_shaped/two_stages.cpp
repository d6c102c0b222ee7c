// See two_stages.h.
#include "two_stages.h"

namespace titan::pipeline_schedules {

std::optional<std::string> needs_two_stages_per_rank(const PipelineShape& shape) {
  if (shape.stages_per_rank() == 2) return std::nullopt;
  return "needs exactly 2 stages per rank, but there are " +
         std::to_string(shape.stages_per_rank());
}

void VRankList::overlapped(int forward_chunk, int backward_chunk) {
  forward(forward_chunk);
  actions_.back().overlaps_next = true;
  backward(backward_chunk);
}

}  // namespace titan::pipeline_schedules
