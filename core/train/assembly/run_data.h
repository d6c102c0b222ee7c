// Opens a run's data sets and selects the rows that this rank trains and validates on. Used by
// assembly.
#pragma once

#include "core/checkpoint/start_point.h"
#include "core/config/schema/job_config.h"
#include "core/plugin/registry.h"
#include "core/train/assembly/run.h"

namespace titan::core {

/// [tokenizer, chat template and model exist] Opens the data sets; the loader begins at the data
/// position that `start` holds, if any.
void open_data(Run& run, const JobConfig& config, Registry& registry, const StartPoint& start);

/// [after apply_transforms] Does nothing unless [validation] is enabled.
void make_validator(Run& run, const JobConfig& config, Registry& registry);

}  // namespace titan::core
