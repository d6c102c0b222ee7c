// Builds a run from a resolved job: everything that a plugin provides is made here, in the one
// order that works.
#pragma once

#include <memory>
#include <vector>

#include <titan/dataset.h>
#include <titan/device.h>
#include <titan/dist/mesh.h>
#include <titan/lr_scheduler.h>
#include <titan/model.h>
#include <titan/optimizer.h>
#include <titan/tokenizer.h>
#include <titan/transform.h>

#include "core/config/job_config.h"
#include "core/data/loader.h"
#include "core/plugin/registry.h"
#include "core/runtime/launch_env.h"
#include "core/train/logger_set.h"

namespace titan::core {

/// Everything a trainer turns. Destroyed in reverse order: loggers first, the device last.
struct Run {
  dist::Mesh mesh;
  std::unique_ptr<Device> device;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Dataset> dataset;
  std::unique_ptr<Loader> loader;
  std::unique_ptr<Model> model;
  std::unique_ptr<ModelPart> part;
  std::vector<std::unique_ptr<ModelTransform>>
      transforms;                              ///< in the order in which they were applied
  std::unique_ptr<StepExecutor> own_executor;  ///< null when a transform executes the steps
  StepExecutor* executor = nullptr;
  std::vector<AfterOptimizerStep*> after_optimizer_step;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<LrScheduler> lr_scheduler;
  LoggerSet loggers;
  uint64_t seed = 0;
};

/// The model with its layers on the meta device: cheap for any size. Used by assemble, dry runs and
/// estimates.
struct MetaModel {
  std::unique_ptr<Model> model;
  std::unique_ptr<ModelPart> part;
};
MetaModel build_meta_model(const JobConfig& config, Registry& registry);

/// Builds the whole run. Nothing is written to disk before everything that can be checked was:
/// tokenizer and data are opened and the model is built on meta first; then the run folder is made,
/// then weights get memory and values.
std::unique_ptr<Run> assemble(const JobConfig& config, Registry& registry, const LaunchEnv& launch);

}  // namespace titan::core
