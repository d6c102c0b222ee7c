// A job of which only a part is wanted: a model, a data set, a chat template. Used by commands that
// assemble no run.
#pragma once

#include <functional>
#include <string>

#include "core/config/resolve.h"

namespace titan::core {

/// Leaves the settings and tables whose path `counts`.
void keep_settings(SettingList& list, const std::function<bool(const KeyPath&)>& counts);

/// Who asks resolve_part.
struct PartialResolution {
  int world_size = 1;
  bool tells = true;         ///< logs warnings
  std::string command = {};  ///< "titan generate": whose --help the report of what is wrong points
                             ///< to; empty: to none but what a message names itself
};
/// The job of `sources`; what is not built yet is not needed for a part, and no file is looked for.
/// Throws a ConfigError with all that is wrong.
JobConfig resolve_part(const JobSources& sources, ComponentLookup& lookup,
                       const PartialResolution& asked = {});

}  // namespace titan::core
