// Loads a start point: checks that it fits, fills weights and optimizer states, restores the random
// generators. Used by the assembly.
#pragma once

#include "core/checkpoint/start_point.h"
#include "core/config/schema/job_config.h"
#include "core/plugin/registry.h"
#include "core/runtime/launch_env.h"
#include "core/train/assembly/run.h"

namespace titan::core {

/// The training state at the start of the run.
TrainState state_at(const StartPoint& start);

/// Collective. Compares the stored weights with the model, before anything has memory. `run.model`
/// exists. Throws a data Error that lists all tensors that are missing, have another shape or are
/// unknown, or a weight that is stored twice with different values; a config Error for a
/// config.json or a manifest of another model; a plugin Error when the model cannot be saved in the
/// requested format.
void check_weights(const Run& run, const StartPoint& start, const JobConfig& config,
                   Registry& registry);

/// Collective. Fills weights and optimizer states from the stored ones and restores the random
/// generators. Throws a data Error for states that do not fit, and a config Error that names the
/// key that leaves them out.
void load_state(Run& run, const StartPoint& start, const LaunchEnv& launch);

}  // namespace titan::core
