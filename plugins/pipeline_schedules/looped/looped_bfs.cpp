// See looped_bfs.h.
#include "looped_bfs.h"

#include "shape_rules.h"

namespace titan::pipeline_schedules {

std::optional<std::string> LoopedBfs::problem(const PipelineShape& shape) const {
  return needs_several_stages_per_rank(shape);
}

PipelineTable LoopedBfs::plan(const PipelineShape& shape) const {
  PipelineTable table(shape.num_ranks);
  const int last_microbatch = shape.num_microbatches - 1;
  for (int rank = 0; rank < shape.num_ranks; ++rank) {
    for (int local = 0; local < shape.stages_per_rank(); ++local)
      for (int microbatch = 0; microbatch <= last_microbatch; ++microbatch)
        table[rank].push_back(
            {PipelineAction::Kind::forward, looped_stage(shape, rank, local), microbatch});
    for (int local = shape.stages_per_rank() - 1; local >= 0; --local)
      for (int microbatch = last_microbatch; microbatch >= 0; --microbatch)
        table[rank].push_back(
            {PipelineAction::Kind::backward, looped_stage(shape, rank, local), microbatch});
  }
  return table;
}

}  // namespace titan::pipeline_schedules
