// Puts the loss that the configuration names into the model's heads. Used by assembly.
#pragma once

#include "core/config/job_config.h"
#include "core/plugin/registry.h"
#include "core/train/run.h"

namespace titan::core {

/// [before any transform] Makes the loss of [loss] name and gives it to every nn::OutputHead of the
/// whole model; without a name heads keep their own. ComponentError: the model has no such head.
void set_loss(Run& run, const JobConfig& config, Registry& registry);

/// [after all transforms] Throws a ComponentError when a head of this rank is gone that had got a
/// loss: whoever has replaced it computes the cross entropy.
void check_loss(Run& run, const JobConfig& config);

}  // namespace titan::core
