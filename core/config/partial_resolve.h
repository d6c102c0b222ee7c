// Resolves a job of which a command needs only a part: a model, a data set, a chat template. Used
// by commands that do not assemble a run.
#pragma once

#include <functional>
#include <string>

#include "core/config/resolve.h"

namespace titan::core {

/// Removes the settings and tables whose path does not satisfy `counts`.
void keep_settings(SettingList& list, const std::function<bool(const KeyPath&)>& counts);

/// Options of resolve_part.
struct PartialResolution {
  int world_size = 1;
  bool tells = true;         ///< logs warnings
  std::string command = {};  ///< "titan generate": error reports refer to its --help; empty: only
                             ///< to the help that a message names itself
};
/// The job of `sources`. Accepts features that are not built yet and does not look for files.
/// Throws a ConfigError with all mistakes.
JobConfig resolve_part(const JobSources& sources, ComponentLookup& lookup,
                       const PartialResolution& asked = {});

}  // namespace titan::core
