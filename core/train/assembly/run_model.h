// The network of a run: the model on the meta device with its loss, what every transform makes of
// it, and the reference model beside it. Used by assembly.
#pragma once

#include <filesystem>
#include <memory>

#include <titan/model.h>

#include "core/config/schema/job_config.h"
#include "core/plugin/registry.h"
#include "core/train/assembly/run.h"

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

/// [after apply_transforms] For a loss that compares with a reference model: builds the one in
/// `folder` (reference_job) through its transforms, without memory, and has it run before each
/// step. Config Error: another vocabulary, or what transforms find wrong with it.
void add_reference(Run& run, const JobConfig& config, Registry& registry,
                   const std::filesystem::path& folder);

}  // namespace titan::core
