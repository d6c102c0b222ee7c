// Turns a pipeline schedule into the plan that the pipeline's executor follows: makes the table,
// checks that it can run and adds sends and receives. Used by the trainer's assembly, by `titan
// train`'s checks and by `titan describe pipeline_schedule`. No torch.
#pragma once

#include <string>

#include <titan/pipeline_schedule.h>

namespace titan::core {

/// `name` is the schedule's, for messages. Throws a config Error when the shape is invalid or the
/// schedule cannot run it ("schedule '1F1B' needs exactly 1 stage per rank, but there are 2").
/// Throws a plugin Error that lists the faults when the schedule's table cannot be executed.
PipelinePlan make_plan(const PipelineSchedule& schedule, const std::string& name,
                       const PipelineShape& shape);

}  // namespace titan::core
