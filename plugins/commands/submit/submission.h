// The texts of a submission: the script that starts the copies, the job for the scheduler, and the
// manifest. Used by titan submit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "snapshot.h"

namespace titan::commands {

/// Placeholder without its signs ("RUN"), and its value.
using Placeholders = std::map<std::string, std::string>;

enum class TemplateLanguage { shell, yaml };

/// Replaces @NAME@. A value becomes one word of the shell, or a string of YAML; a number stays as
/// it is. Throws a config Error for an unknown placeholder, with file and line.
std::string filled_in(std::string_view text, const std::string& file, TemplateLanguage language,
                      const Placeholders& values);

/// run.sh: checks all hashes, then starts the copied titan with given.toml and `flags`. Its
/// arguments are further flags of titan train; "--ranks N" or "--node ..." in front starts ranks by
/// titan launch.
std::string run_script(const Snapshot& snapshot, const std::vector<std::string>& flags,
                       const std::filesystem::path& working_folder);

/// Lines of sha256sum for the hashed ones of `files`.
std::string sums_of(const std::vector<OutsideFile>& files);

/// Lines of sha256sum for all files below `folder`, by relative name.
std::string sums_below(const std::filesystem::path& folder);

}  // namespace titan::commands
