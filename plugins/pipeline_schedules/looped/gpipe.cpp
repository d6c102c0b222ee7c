// See gpipe.h.
#include "gpipe.h"

#include "shape_rules.h"

namespace titan::pipeline_schedules {

std::optional<std::string> GPipe::problem(const PipelineShape& shape) const {
  return needs_one_stage_per_rank(shape);
}

PipelineTable GPipe::plan(const PipelineShape& shape) const {
  PipelineTable table(shape.num_ranks);
  for (int rank = 0; rank < shape.num_ranks; ++rank)
    for (const auto kind : {PipelineAction::Kind::forward, PipelineAction::Kind::backward})
      for (int microbatch = 0; microbatch < shape.num_microbatches; ++microbatch)
        table[rank].push_back({kind, rank, microbatch});
  return table;
}

}  // namespace titan::pipeline_schedules
