// See one_forward_one_backward.h.
#include "one_forward_one_backward.h"

#include "shape_rules.h"

namespace titan::pipeline_schedules {

std::optional<std::string> OneForwardOneBackward::problem(const PipelineShape& shape) const {
  if (auto wrong = needs_one_stage_per_rank(shape)) return wrong;
  if (shape.num_microbatches >= shape.num_stages) return std::nullopt;
  return "needs as many microbatches as stages, but there are " +
         std::to_string(shape.num_microbatches) + " microbatches for " +
         std::to_string(shape.num_stages) + " stages";
}

PipelineTable OneForwardOneBackward::plan(const PipelineShape& shape) const {
  using Kind = PipelineAction::Kind;
  PipelineTable table(shape.num_ranks);
  for (int rank = 0; rank < shape.num_ranks; ++rank) {
    int forwards = 0;
    const auto run_forward = [&] { table[rank].push_back({Kind::forward, rank, forwards++}); };
    while (forwards < shape.num_ranks - rank) run_forward();
    for (int backwards = 0; backwards < shape.num_microbatches; ++backwards) {
      table[rank].push_back({Kind::backward, rank, backwards});
      if (forwards < shape.num_microbatches) run_forward();
    }
  }
  return table;
}

}  // namespace titan::pipeline_schedules
