// Takes over what a start point holds: checks that it fits, fills weights and optimizer states,
// restores the generators. Used by the assembly.
#pragma once

#include "core/checkpoint/start_point.h"
#include "core/config/schema/job_config.h"
#include "core/plugin/registry.h"
#include "core/runtime/launch_env.h"
#include "core/train/assembly/run.h"

namespace titan::core {

/// What the run has reached when it starts.
TrainState state_at(const StartPoint& start);

/// Collective. Compares the stored weights with the model, before anything has memory. `run.model`
/// is there. data Error listing all that is missing, of another shape or too many, or a weight that
/// is stored twice with other values; config Error for a config.json or a manifest of another
/// model; plugin Error when the model cannot be saved as it is asked for.
void check_weights(const Run& run, const StartPoint& start, const JobConfig& config,
                   Registry& registry);

/// Collective. Fills weights and optimizer states from the stored ones and restores the generators.
/// data Error for states that do not fit, config Error that says how to leave them out.
void load_state(Run& run, const StartPoint& start, const LaunchEnv& launch);

}  // namespace titan::core
