// Reads `--section.key value` arguments into settings. Which flags there are comes from the option
// table, so that every option of a file is a flag as well.
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
/// `--a.b value`, `--a.b=value`; `_` and `-` are the same; names are never completed. Booleans:
/// `--a.b`, `--a.no_b`, or
/// `--a.b=true|false`. A list is one comma-separated word, a list of lists one such word per inner
/// list. `None` unsets what may be unset. `--set a.b=VALUE` takes VALUE as TOML. Values are checked
/// later, with those of the file.
SettingList parse_command_line(const std::vector<std::string>& arguments, const OptionTable& table,
                               Diagnostics& diagnostics);

/// The file that `--job.config_file FILE` (or `=FILE`, or with `-`) names; the last one counts, as
/// of every key. Absent when there is none.
std::optional<std::string> find_config_file(const std::vector<std::string>& arguments);

}  // namespace titan::core
