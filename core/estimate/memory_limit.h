// Finds how many bytes of activations a rank may keep within [activation_checkpoint] memory_limit,
// by simulating its step on the meta device. Used before a run is assembled.
#pragma once

#include "core/config/schema/job_config.h"
#include "core/plugin/registry.h"

namespace titan::core {

/// If memory_limit is set: sets the option `kept_bytes` of the chosen activation checkpointing, or
/// removes activation checkpointing when everything fits; logs the result. All ranks of a pipeline
/// stage find the same value. Throws a config Error when even full recomputation does not fit, or
/// when the chosen activation checkpointing has no such option.
void fit_memory_limit(JobConfig& config, Registry& registry, int rank);

}  // namespace titan::core
