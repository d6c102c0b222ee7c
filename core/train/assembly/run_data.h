// What a run reads: its data sets, and the rows of them that this rank trains and validates on.
// Used by assembly.
#pragma once

#include "core/checkpoint/start_point.h"
#include "core/config/schema/job_config.h"
#include "core/plugin/registry.h"
#include "core/train/assembly/run.h"

namespace titan::core {

/// [tokenizer, chat template and model are there] Opens the data sets; where `start` holds a place
/// in them, the loader begins there.
void open_data(Run& run, const JobConfig& config, Registry& registry, const StartPoint& start);

/// [after apply_transforms] Nothing unless [validation] is enabled.
void make_validator(Run& run, const JobConfig& config, Registry& registry);

}  // namespace titan::core
