// See plan.h.
#include "core/pipeline/plan.h"

#include <titan/error.h>
#include <titan/pipelines/validation.h>

#include "core/pipeline/lowering.h"

namespace titan::core {
namespace {

std::string described(const PipelineShape& shape) {
  return titan::detail::concat(shape.num_stages, " stages on ", shape.num_ranks, " ranks with ",
                               shape.num_microbatches, " microbatches");
}

void check_shape(const PipelineShape& shape) {
  const bool is_one = shape.num_ranks >= 1 && shape.num_microbatches >= 1 &&
                      shape.num_stages >= 1 && shape.num_stages % shape.num_ranks == 0;
  TITAN_CHECK(is_one, config, "a pipeline cannot have ", described(shape),
              ": stages must be a multiple of ranks, and there must be at least 1 of each");
}

}  // namespace

PipelinePlan make_plan(const PipelineSchedule& schedule, const std::string& name,
                       const PipelineShape& shape) {
  check_shape(shape);
  if (const auto problem = schedule.problem(shape))
    fail(ErrorKind::config, "schedule '", name, "' ", *problem);
  const PipelineTable table = schedule.plan(shape);
  if (const auto problems = table_problems(table, shape); !problems.empty()) {
    std::string text;
    for (const std::string& problem : problems) text += "\n  " + problem;
    fail(ErrorKind::plugin, "schedule '", name, "' gives a table that cannot run ",
         described(shape), ":", text);
  }
  PipelinePlan plan{.shape = shape, .rank_of_stage = ranks_of_stages(table, shape), .actions = {}};
  plan.actions = with_transfers(table, plan.rank_of_stage, shape);
  return plan;
}

}  // namespace titan::core
