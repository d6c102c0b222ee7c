// Which network the reference model is. Used where it is built.
#pragma once

#include <filesystem>

#include <titan/model.h>

#include "core/config/schema/job_config.h"
#include "core/plugin/registry.h"

namespace titan::core {

/// The job that builds the reference model of `config`: without what concerns training alone, and
/// with the model that `folder` says it holds, by its manifest or config.json. If that is `model`,
/// the run's, or `folder` is empty or says nothing, the run's converters stay; another one has
/// none. Throws a config Error: no installed model is what the folder describes, or the job cannot
/// run it.
JobConfig reference_job(const JobConfig& config, const Model& model,
                        const std::filesystem::path& folder, Registry& registry);

}  // namespace titan::core
