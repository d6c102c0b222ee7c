// Reads TOML into settings with places: every key and value with file, line, column and length. The
// only user of toml++.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <titan/export.h>
#include <titan/settings/diagnostics.h>
#include <titan/settings/settings.h>

namespace titan {

/// The settings of `text` in the order of writing; inline tables are flattened like any other. A
/// syntax error ends the reading: it is reported with its place and nothing is returned; a value
/// that no option takes (a date) does not. `name` stands in messages.
TITAN_API std::optional<SettingList> parse_toml(const std::string& name, std::string_view text,
                                                Diagnostics& diagnostics);

/// The whole file. A missing file, a folder and an unreadable file are reported.
TITAN_API std::optional<SettingList> read_toml(const std::filesystem::path& file,
                                               Diagnostics& diagnostics);

/// One assignment from the command line, `section.key=VALUE`, VALUE in TOML. `shown` is what places
/// refer to; the assignment begins there at code point `column` (from 1).
TITAN_API SettingList parse_assignment(std::string_view assignment, const std::string& shown,
                                       int column, Diagnostics& diagnostics);

}  // namespace titan
