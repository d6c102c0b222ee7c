// Builds a run from a resolved job: everything that a plugin provides is made here, in the one
// order that works.
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
/// an error can leave it half built. Nothing is written to disk before everything that can be
/// checked was: tokenizer and data are opened, the model is built on meta and compared with the
/// checkpoint it starts from first; then weights get memory and values, initial or stored ones, and
/// rank 0 makes the run folder.
void assemble(Run& run, const JobConfig& config, Registry& registry, Rendezvous& rendezvous,
              FailureWatch& watch, const StartPoint& start);

/// The trained network alone, as this rank computes it: device, groups, tokenizer, layers through
/// all transforms, and the weights of `start`. What a trainer needs beside is not there; `executor`
/// gives logits. A tokenizer that `run` has already stays.
void assemble_weights(Run& run, const JobConfig& config, Registry& registry, Rendezvous& rendezvous,
                      FailureWatch& watch, const StartPoint& start);

/// `rank` of a run whose other ranks do not exist, on the meta device: model, transforms and
/// optimizer, no data, loggers or files. Finds what assemble would find wrong with the model's
/// layout. Optimizers and a schedule without a name are left out. `tokenizer`: for watchers, which
/// judge files by it; null: none is read.
std::unique_ptr<Run> assemble_simulated(const JobConfig& config, Registry& registry, int rank,
                                        const Tokenizer* tokenizer = nullptr);

}  // namespace titan::core
