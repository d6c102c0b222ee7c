// Reads TOML into settings with source ranges: file, line, column and length of every key and
// value.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <titan/export.h>
#include <titan/settings/diagnostics.h>
#include <titan/settings/settings.h>

namespace titan {

/// The settings of `text` in the order of writing; inline tables are flattened like any other. On a
/// syntax error it reports the error with its place and returns nothing. A value that no option
/// takes (a date) is reported, but reading continues. `name` is used in messages.
TITAN_API std::optional<SettingList> parse_toml(const std::string& name, std::string_view text,
                                                Diagnostics& diagnostics);

/// Reads the whole file. Reports a missing file, a folder and an unreadable file.
TITAN_API std::optional<SettingList> read_toml(const std::filesystem::path& file,
                                               Diagnostics& diagnostics);

/// One assignment from the command line, `section.key=VALUE`, VALUE in TOML. Source ranges refer to
/// `shown`, in which the assignment begins at code point `column` (from 1).
TITAN_API SettingList parse_assignment(std::string_view assignment, const std::string& shown,
                                       int column, Diagnostics& diagnostics);

}  // namespace titan
