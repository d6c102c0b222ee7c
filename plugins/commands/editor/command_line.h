// Finds values of flags in a command line and in the recipe that it names. Used by completion.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace titan::commands {

/// The last value of `--key` in the words: "--key value" or "--key=value".
std::optional<std::string> value_in(const std::vector<std::string>& words, const std::string& key);

/// Every value of `--key` in the words.
std::vector<std::string> values_in(const std::vector<std::string>& words, const std::string& key);

/// The keys of --job.config_file in the words, each value as JSON; empty if it cannot be read.
std::map<std::string, std::string> recipe_of(const std::vector<std::string>& words);

}  // namespace titan::commands
