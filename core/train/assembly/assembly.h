// Builds a run from a resolved job: makes every object that a plugin provides, in the required
// order. Used by the commands that train, generate or simulate ranks.
#pragma once

#include <memory>

#include <titan/dist/mesh.h>
#include <titan/model.h>
#include <titan/tokenizer.h>

#include "core/checkpoint/start_point.h"
#include "core/config/schema/job_config.h"
#include "core/plugin/registry.h"
#include "core/runtime/groups/failure_watch.h"
#include "core/runtime/groups/rendezvous.h"
#include "core/train/assembly/run.h"
#include "core/train/assembly/run_model.h"

namespace titan::core {

/// Throws a config Error when the tokenizer has more ids than the model has rows for.
void check_vocabulary(const Tokenizer& tokenizer, const Model& model, const JobConfig& config);

/// Builds the whole run of this rank into `run`, which is empty and outlives `watch`'s last report:
/// an error can leave it half built. All checks come before the first write to disk: tokenizer and
/// data are opened, the model is built on meta and compared with the checkpoint that it starts
/// from. Then weights get memory and values, initial or stored ones, and rank 0 makes the run
/// folder.
void assemble(Run& run, const JobConfig& config, Registry& registry, Rendezvous& rendezvous,
              FailureWatch& watch, const StartPoint& start);

/// Builds only the trained network of this rank: device, groups, tokenizer, layers after all
/// transforms, and the weights of `start`. The other members of `run` stay empty; `executor`
/// computes logits. A tokenizer that `run` already has stays.
void assemble_weights(Run& run, const JobConfig& config, Registry& registry, Rendezvous& rendezvous,
                      FailureWatch& watch, const StartPoint& start);

/// `rank` of a run whose other ranks do not exist, on the meta device: model, transforms and
/// optimizer, but no data, loggers or files. Reports the errors in the model's layout that assemble
/// would. Optimizers and a schedule without a name are left out. `tokenizer`: for watchers that
/// check files with it; null: none is read.
std::unique_ptr<Run> assemble_simulated(const JobConfig& config, Registry& registry, int rank,
                                        const Tokenizer* tokenizer = nullptr);

}  // namespace titan::core
