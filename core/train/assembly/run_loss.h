// Puts the loss that the configuration names into the model's heads. Used by assembly.
#pragma once

#include <titan/reference_loss.h>

#include "core/config/schema/job_config.h"
#include "core/plugin/registry.h"
#include "core/train/assembly/run.h"

namespace titan::core {

/// [before any transform] Makes the loss of [loss] name and gives it to every nn::OutputHead of the
/// whole model; without a name heads keep their own. ComponentError: the model has no such head.
void set_loss(Run& run, const JobConfig& config, Registry& registry);

/// [after all transforms] Puts around the executor what counts the terms of a loss of sequences.
void count_terms(Run& run);

/// Whether the run's loss compares a chosen answer with a rejected one.
bool compares_answers(const Run& run);

/// What the run's loss asks a reference model for.
ReferenceOutput reference_output(const Run& run);

/// Throws a ComponentError when the loss compares with a reference model and no key says which, or
/// when one is named and the loss compares with none.
void check_reference(const Run& run, const JobConfig& config);

/// [after all transforms] Throws a ComponentError for a loss of sequences, or one that compares
/// with a reference model, whose sequences are cut or, of sequences, whose batches do not tell
/// documents apart. And a ComponentError when a head of this rank is gone that had got a loss:
/// whoever has replaced it computes the cross entropy.
void check_loss(Run& run, const JobConfig& config);

}  // namespace titan::core
