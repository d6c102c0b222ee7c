// From a schedule to what the executor of a pipeline follows: the schedule's table is made, proved
// to run and completed with everything that is sent. Used by the trainer's assembly, by `titan
// train`'s checks and by `titan describe pipeline_schedule`. No torch.
#pragma once

#include <string>

#include <titan/pipeline_schedule.h>

namespace titan::core {

/// `name` is the schedule's, for messages. Throws a config Error when the schedule cannot run the
/// shape ("schedule '1F1B' needs exactly 1 stage per rank, but there are 2") or the shape is none,
/// and a plugin Error that lists what is wrong when the schedule's table cannot be followed.
PipelinePlan make_plan(const PipelineSchedule& schedule, const std::string& name,
                       const PipelineShape& shape);

}  // namespace titan::core
