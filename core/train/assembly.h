// Builds a run from a resolved job: everything that a plugin provides is made here, in the one
// order that works.
#pragma once

#include <memory>
#include <vector>

#include <titan/dataset.h>
#include <titan/device.h>
#include <titan/dist/mesh.h>
#include <titan/local_gradients.h>
#include <titan/lr_scheduler.h>
#include <titan/model.h>
#include <titan/optimizer.h>
#include <titan/tokenizer.h>
#include <titan/transform.h>

#include "core/checkpoint/checkpointer.h"
#include "core/checkpoint/start_point.h"
#include "core/config/job_config.h"
#include "core/data/loader.h"
#include "core/plugin/registry.h"
#include "core/runtime/failure_watch.h"
#include "core/runtime/rendezvous.h"
#include "core/train/early_optimizer.h"
#include "core/train/fingerprints.h"
#include "core/train/logger_set.h"
#include "core/train/loss_scaler.h"
#include "core/train/optimizer_set.h"
#include "core/train/validator.h"

namespace titan::core {

/// Everything a trainer turns. Destroyed in reverse order: loggers first, the device last.
struct Run {
  std::unique_ptr<Device> device;
  dist::Mesh mesh;
  std::unique_ptr<Tokenizer> tokenizer;
  std::vector<std::unique_ptr<Dataset>> datasets;  ///< one per source, then that of validation
  std::unique_ptr<Loader> loader;
  std::unique_ptr<Model> model;
  std::unique_ptr<ModelPart> part;
  std::vector<std::unique_ptr<ModelTransform>>
      transforms;                              ///< in the order in which they were applied
  std::unique_ptr<StepExecutor> own_executor;  ///< null when a transform executes the steps
  StepExecutor* executor = nullptr;
  std::vector<AfterOptimizerStep*> after_optimizer_step;
  std::vector<ExportTransform*> exports;
  std::unique_ptr<LocalGradients> local_gradients;  ///< null unless early_optimizer needs it
  std::unique_ptr<Optimizer> optimizer;
  EarlyOptimizer* early_optimizer = nullptr;  ///< `optimizer`, where it works inside backward
  std::unique_ptr<LossScaler> loss_scaler;
  std::unique_ptr<LrScheduler> lr_scheduler;
  std::unique_ptr<Checkpointer> checkpoints;
  LoggerSet loggers;
  std::unique_ptr<Validator> validator;        ///< null unless [validation] is enabled
  std::unique_ptr<Fingerprints> fingerprints;  ///< null unless [debug] asks for them
  int64_t first_row = 0;                       ///< of the global batch, that this rank trains on
  uint64_t seed = 0;
  TrainState state;  ///< where the run stands; not 0 at the start of a resumed one
};

/// The model with its layers on the meta device: cheap for any size. Used by assemble, dry runs and
/// estimates.
struct MetaModel {
  std::unique_ptr<Model> model;
  std::unique_ptr<ModelPart> part;
};
MetaModel build_meta_model(const JobConfig& config, Registry& registry);

/// Throws a config Error when the tokenizer has more ids than the model has rows for.
void check_vocabulary(const Tokenizer& tokenizer, const Model& model, const JobConfig& config);

/// [training] dtype: what parameters, gradients and optimizer states are stored in.
at::ScalarType parameter_dtype(const JobConfig& config);
/// What the layers compute in.
at::ScalarType compute_dtype(const JobConfig& config);

/// Builds the whole run of this rank into `run`, which is empty and outlives `watch`'s last report:
/// an error can leave it half built. Nothing is written to disk before everything that can be
/// checked was: tokenizer and data are opened, the model is built on meta and compared with the
/// checkpoint it starts from first; then weights get memory and values, initial or stored ones, and
/// rank 0 makes the run folder.
void assemble(Run& run, const JobConfig& config, Registry& registry, Rendezvous& rendezvous,
              FailureWatch& watch, const StartPoint& start);

/// `rank` of a run whose other ranks do not exist, on the meta device: model, transforms and
/// optimizer, no data, loggers or files. Finds what assemble would find wrong with the model's
/// layout. Optimizers and a schedule without a name are left out.
std::unique_ptr<Run> assemble_played(const JobConfig& config, Registry& registry, int rank);

}  // namespace titan::core
