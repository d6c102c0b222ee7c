// config.toml of a run's folder: the resolved configuration, as the trainer wrote it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace titan::commands {

/// Every value by its dotted key, "training.steps", as JSON. Throws a data Error with file, line
/// and column of what is no TOML. `name` stands in the message.
std::map<std::string, std::string> parse_run_config(const std::string& name, std::string_view text);

/// The same of a file. Throws an io Error when it cannot be read.
std::map<std::string, std::string> read_run_config(const std::filesystem::path& file);

}  // namespace titan::commands
