// Reads `--section.key value` arguments into settings. The option table determines the flags, so
// every option of a file is also a flag. Used by collect.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <titan/settings/diagnostics.h>
#include <titan/settings/settings.h>

#include "core/config/schema/option_table.h"

namespace titan::core {

/// The settings of `arguments` in their order; a later one replaces an earlier one of the same
/// path.
///
/// `--a.b value`, `--a.b=value`; `_` and `-` are the same; names cannot be abbreviated. Booleans:
/// `--a.b`, `--a.no_b`, or `--a.b=true|false`. A list is one comma-separated word, a list of lists
/// one such word per inner list. `None` unsets an option that may be unset. `--set a.b=VALUE` takes
/// VALUE as TOML. Values are checked later, with those of the file.
SettingList parse_command_line(const std::vector<std::string>& arguments, const OptionTable& table,
                               Diagnostics& diagnostics);

/// The file that `--job.config_file FILE` (or `=FILE`, or with `-`) names; the last one wins, as
/// for every key.
std::optional<std::string> find_config_file(const std::vector<std::string>& arguments);

}  // namespace titan::core
