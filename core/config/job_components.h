// Lists the components that a job uses and the plugins that provide them, built or not. Used by
// `titan list --for-job`, and through it by the scripts that build only the plugins of a job.
#pragma once

#include <vector>

#include "core/config/resolve.h"
#include "core/plugin/listing.h"
#include "core/plugin/registry.h"

namespace titan::core {

/// The components in the order in which they are looked up, each once. Names that no plugin
/// provides are left out; other mistakes in the job are not reported. The flavors of a model whose
/// plugin is not built are unknown, so every plugin with flavors of it is listed.
std::vector<UsedComponent> components_of_job(const JobSources& sources, const Catalog& catalog,
                                             Registry& registry, int world_size);

}  // namespace titan::core
