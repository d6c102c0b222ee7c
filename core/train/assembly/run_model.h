// The network of a run: the model on the meta device with its loss, the result of every transform,
// and the reference model. Used by assembly.
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

/// [device and mesh exist] The whole model, with the loss of [loss] in its heads.
void build_model(Run& run, const JobConfig& config, Registry& registry);

/// [after build_model] Reduces the model to this rank's part, and connects the objects that run a
/// step.
void apply_transforms(Run& run, const JobConfig& config, Registry& registry);

/// [after apply_transforms] For a loss that compares with a reference model: builds the one in
/// `folder` (reference_job) through its transforms, without memory, and runs it before each step.
/// Config Error: another vocabulary, or an error of a transform.
void add_reference(Run& run, const JobConfig& config, Registry& registry,
                   const std::filesystem::path& folder);

}  // namespace titan::core
