// Text of pipeline actions, for errors and for the report of each rank's activity on a failure.
#pragma once

#include <string>

#include <titan/pipeline_schedule.h>

namespace titan::pipeline {

/// "forward of stage 2, microbatch 0 (2F0)".
std::string action_text(const PipelineAction& action);

}  // namespace titan::pipeline
