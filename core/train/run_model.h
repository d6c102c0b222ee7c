// The network of a run: the model on the meta device with its loss, what every transform makes of
// it, and the reference model beside it. Used by assembly.
#pragma once

#include <memory>

#include <titan/model.h>

#include "core/checkpoint/start_point.h"
#include "core/config/job_config.h"
#include "core/plugin/registry.h"
#include "core/runtime/launch_env.h"
#include "core/train/run.h"

namespace titan::core {

/// The model with its layers on the meta device: cheap for any size. Used by assemble, dry runs and
/// estimates.
struct MetaModel {
  std::unique_ptr<Model> model;
  std::unique_ptr<ModelPart> part;
};
MetaModel build_meta_model(const JobConfig& config, Registry& registry);

/// [device and mesh are there] The whole model, with the loss of [loss] in its heads.
void build_model(Run& run, const JobConfig& config, Registry& registry);

/// [after build_model] Narrows it to what this rank computes, and connects what runs a step.
void apply_transforms(Run& run, const JobConfig& config, Registry& registry);

/// [after apply_transforms] Where the loss compares with a reference model: builds it through the
/// same transforms, without memory, and has it run before each step. Throws as check_reference.
void add_reference(Run& run, const JobConfig& config, Registry& registry);
/// Of run.reference; as check_weights.
void check_reference_weights(const Run& reference, const StartPoint& start, const JobConfig& config,
                             Registry& registry);
/// Collective. Memory and values.
void load_reference(Run& reference, const StartPoint& start, const JobConfig& config,
                    const LaunchEnv& launch);

}  // namespace titan::core
