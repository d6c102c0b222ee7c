// Merges file and command line: translates old names, checks both against the option table, and
// lets the command line take precedence. Used by resolve() and list_flags().
#pragma once

#include <string>
#include <vector>

#include <titan/settings/diagnostics.h>

#include "core/config/legacy/legacy_names.h"
#include "core/config/schema/option_table.h"
#include "core/config/sources/schema_check.h"

namespace titan::core {

/// The values of both sources, and the old names whose translation needs the model.
struct Collected {
  GivenValues given;
  std::vector<OldRequest> later;
};

Collected collect(const SettingList& file, const std::vector<std::string>& arguments,
                  const OptionTable& table, int world_size, Diagnostics& diagnostics);

/// Whether the file or the command line gives the key `path`, or a key in the section of that name,
/// by its current or an old name.
bool mentions(const SettingList& file, const std::vector<std::string>& arguments,
              const KeyPath& path);

/// The core's sections, and the old names as flags. Sections of torchtitan's files that belong to a
/// plugin are left unchecked.
OptionTable core_table(const SettingList& file);

/// The values of the core's own keys, before any component is known. Reports nothing, because
/// everything is read again later.
Collected peek_core_keys(const SettingList& file, const std::vector<std::string>& arguments,
                         int world_size);

}  // namespace titan::core
