// Finds how much a rank may keep of its forward so that it stays within
// [activation_checkpoint] memory_limit: by simulating its step on the meta device.
#pragma once

#include "core/config/schema/job_config.h"
#include "core/plugin/registry.h"

namespace titan::core {

/// Sets the option `kept_bytes` of the chosen activation checkpointing where memory_limit is set,
/// and takes activation checkpointing out where everything fits; logs what was found. All ranks of
/// one pipeline rank find the same. Throws a config Error when not even the least fits, or when the
/// chosen activation checkpointing has no such option.
void fit_memory_limit(JobConfig& config, Registry& registry, int rank);

}  // namespace titan::core
