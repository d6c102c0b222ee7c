// Brings file and command line together: old names translated, everything held against the option
// table, the command line over the file. Used by resolve() and list_flags().
#pragma once

#include <string>
#include <vector>

#include <titan/settings/diagnostics.h>

#include "core/config/legacy/legacy_names.h"
#include "core/config/schema/option_table.h"
#include "core/config/sources/schema_check.h"

namespace titan::core {

/// Both sources as given values, and the old names that wait for the model.
struct Collected {
  GivenValues given;
  std::vector<OldRequest> later;
};

Collected collect(const SettingList& file, const std::vector<std::string>& arguments,
                  const OptionTable& table, int world_size, Diagnostics& diagnostics);

/// Whether the file or the command line says something at `path` or in the section of that name,
/// under a name of today or an old one.
bool mentions(const SettingList& file, const std::vector<std::string>& arguments,
              const KeyPath& path);

/// The core's sections, and the old names as flags. Sections of torchtitan that are a plugin's are
/// left unchecked.
OptionTable core_table(const SettingList& file);

/// What the core's own keys say, before any component is known. Nothing is reported: all of it is
/// read again later.
Collected first_sight(const SettingList& file, const std::vector<std::string>& arguments,
                      int world_size);

}  // namespace titan::core
