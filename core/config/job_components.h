// Which components a job uses and which plugins provide them, whether these are built or not. Used
// by `titan list --for-job`, and through it by the scripts that build only what a job needs.
#pragma once

#include <vector>

#include "core/config/resolve.h"
#include "core/plugin/listing.h"
#include "core/plugin/registry.h"

namespace titan::core {

/// In the order in which they are looked up, each once. Names that nothing provides are left out,
/// and nothing else that is wrong with the job is reported. While the plugin of a model is not built
/// its flavors cannot be asked for: every plugin that has some is then listed.
std::vector<UsedComponent> components_of_job(const JobSources& sources, const Catalog& catalog,
                                             Registry& registry, int world_size);

}  // namespace titan::core
