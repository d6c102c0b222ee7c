// Sets the configured loss in the model's heads. Used by assembly.
#pragma once

#include <titan/reference_loss.h>

#include "core/config/schema/job_config.h"
#include "core/plugin/registry.h"
#include "core/train/assembly/run.h"

namespace titan::core {

/// [before any transform] Makes the loss of [loss] name and sets it in every nn::OutputHead of the
/// whole model; without a name heads keep their own. ComponentError: the model has no such head.
void set_loss(Run& run, const JobConfig& config, Registry& registry);

/// [after all transforms] Wraps the executor in the counter of terms, for a loss of sequences.
void count_terms(Run& run);

/// Whether the run's loss compares a chosen answer with a rejected one.
bool compares_answers(const Run& run);

/// The outputs of a reference model that the run's loss needs.
ReferenceOutput reference_output(const Run& run);

/// Throws a ComponentError when the loss compares with a reference model and no key names it, or
/// when one is named and the loss compares with none.
void check_reference(const Run& run, const JobConfig& config);

/// [after all transforms] For a loss of sequences, or one that compares with a reference model,
/// throws a ComponentError if sequences are cut over ranks; for a loss of sequences also if batches
/// do not mark documents. Throws one too if a converter or pass has replaced a head of this rank
/// that had the loss.
void check_loss(Run& run, const JobConfig& config);

}  // namespace titan::core
