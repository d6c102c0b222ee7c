// All objects of a run. The assembly fills it, the trainer uses it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <titan/chat_template.h>
#include <titan/dataset.h>
#include <titan/device.h>
#include <titan/dist/mesh.h>
#include <titan/lr_scheduler.h>
#include <titan/model.h>
#include <titan/optimizer.h>
#include <titan/step.h>
#include <titan/tokenizer.h>
#include <titan/transform.h>

#include "core/base/folder_lock.h"
#include "core/checkpoint/checkpointer.h"
#include "core/config/schema/job_config.h"
#include "core/data/batches/loader.h"
#include "core/train/assembly/validator.h"
#include "core/train/logging/logger_set.h"
#include "core/train/loss/loss_parts.h"
#include "core/train/loss/loss_scaler.h"
#include "core/train/loss/loss_terms.h"
#include "core/train/loss/reference_executor.h"
#include "core/train/optimizer/early_optimizer.h"
#include "core/train/optimizer/optimizer_set.h"
#include "core/train/step/step_parts.h"
#include "core/train/step/watcher_set.h"

namespace titan::core {

/// All objects that a trainer uses. Destroyed in reverse order: loggers first, the device last.
struct Run {
  FolderLock folder_lock;          ///< of rank 0, on job.dump_folder
  std::shared_ptr<Device> device;  ///< shared with the reference model's run
  dist::Mesh mesh;
  WatcherSet watchers;  ///< their wrappers enclose the part's modules: destroyed after it
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ChatTemplate> chat_template;     ///< null unless the job has one
  std::vector<std::unique_ptr<Dataset>> datasets;  ///< one per source, then the validation set
  std::unique_ptr<Loader> loader;
  std::unique_ptr<Model> model;
  std::unique_ptr<LossParts> loss_parts = std::make_unique<LossParts>();  ///< without names unless
                                                                          ///< [loss] has some
  std::unique_ptr<ModelPart> part;
  std::shared_ptr<Loss> loss;                 ///< of [loss]; null: heads have their own
  std::vector<std::string> heads_with_loss;   ///< paths in the whole model; computed by [loss]
  std::unique_ptr<TermCounter> term_counter;  ///< null unless the loss is one of sequences
  std::vector<std::unique_ptr<ModelTransform>>
      transforms;  ///< in the order in which they were applied
  StepWorkers workers;
  std::unique_ptr<JobConfig> reference_job;  ///< of `reference`, whose transforms read its plan
  std::unique_ptr<Run> reference;  ///< device, mesh and network of the model that the loss compares
                                   ///< with; null if it compares with none
  std::unique_ptr<ReferenceExecutor> reference_executor;  ///< runs it before each step
  StepExecutor* innermost_executor = nullptr;             ///< runs the microbatches
  StepExecutor* executor = nullptr;  ///< the outermost wrapper of innermost_executor
  std::vector<StepMember*> members;  ///< those of plugins, in the order in which they act
  std::vector<AfterOptimizerStep*> after_optimizer_step;
  std::vector<ExportTransform*> exports;
  std::vector<StatefulOptimizer*> stateful;  ///< transforms; `optimizer` has their states too
  ReplicaMember* replicas = nullptr;         ///< null unless the run has several replica groups
  std::unique_ptr<Optimizer> optimizer;
  EarlyOptimizer* early_optimizer = nullptr;  ///< `optimizer`, if it updates inside the backward
  std::unique_ptr<LossScaler> loss_scaler;
  std::unique_ptr<LrScheduler> lr_scheduler;
  std::unique_ptr<Checkpointer> checkpoints;
  LoggerSet loggers;
  std::unique_ptr<Validator> validator;  ///< null unless [validation] is enabled
  int64_t first_row = 0;                 ///< first row of the global batch that this rank trains on
  uint64_t seed = 0;
  std::vector<std::string> unlisted_plugins;  ///< loaded although the lock file does not list them
  std::unique_ptr<ReplicaRun> replica_run;    ///< for `replicas`; null without it
  TrainState state;  ///< progress of the run; not 0 at the start of a resumed one
};

}  // namespace titan::core
