// The identity that must be equal on all ranks of a run: the program, the plugin files, the
// configuration. Compared by Rendezvous::agree.
#pragma once

#include "core/config/schema/job_config.h"
#include "core/plugin/registry.h"
#include "core/runtime/groups/rendezvous.h"

namespace titan::core {

/// One fact per configuration key and per plugin that the job uses (version and XXH3 of its file),
/// and the program's own build. Opens and reads the plugin files.
RunIdentity run_identity(const JobConfig& config, Registry& registry);

}  // namespace titan::core
