// Determines the network of the reference model. Used where it is built.
#pragma once

#include <filesystem>

#include <titan/model.h>

#include "core/config/schema/job_config.h"
#include "core/plugin/registry.h"

namespace titan::core {

/// The job that builds the reference model of `config`: without the sections that concern training
/// alone, and with the model that the manifest or config.json of `folder` describes. If that is
/// `model`, the run's, or `folder` is empty or describes none, the run's converters stay; another
/// model gets none. Throws a config Error if no installed model matches the folder, or if the job
/// cannot run it.
JobConfig reference_job(const JobConfig& config, const Model& model,
                        const std::filesystem::path& folder, Registry& registry);

}  // namespace titan::core
