// Reads config.toml of a run's folder: the resolved configuration, as the trainer wrote it. Used by
// commands that read run folders.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace titan::commands {

/// Every value as JSON, by its dotted key ("training.steps"). Throws a data Error with file, line
/// and column for invalid TOML. `name`: the file's name in messages.
std::map<std::string, std::string> parse_run_config(const std::string& name, std::string_view text);

/// Reads the same from a file. Throws an io Error when it cannot be read.
std::map<std::string, std::string> read_run_config(const std::filesystem::path& file);

}  // namespace titan::commands
