// Pipeline actions in words, for errors and for what a rank says it was doing when a run fails.
#pragma once

#include <string>

#include <titan/pipeline_schedule.h>

namespace titan::pipeline {

/// "forward of stage 2, microbatch 0 (2F0)".
std::string in_words(const PipelineAction& action);

}  // namespace titan::pipeline
