// A job as it is given: the file and the flags, before any component is known. Used by resolve.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <titan/settings/diagnostics.h>
#include <titan/settings/settings.h>

namespace titan::core {

/// What was given: the file's settings and the arguments, not checked against any schema yet.
struct JobSources {
  std::optional<std::string> config_file;  ///< from --job.config_file
  SettingList file;
  std::vector<std::string> arguments;
  std::vector<std::string> plugin_paths;  ///< [plugins] paths, for the plugin search
  Diagnostics found;                      ///< values that no option takes; resolve() reports them
};

/// Reads the file that `--job.config_file` names among `arguments` (argv after the program, the
/// command's name and the command's own flags). Throws a config Error: file missing or not a file,
/// malformed TOML with its place.
JobSources read_sources(std::vector<std::string> arguments);
/// The same from a text in memory; `name` stands in messages.
JobSources read_sources(const std::string& name, const std::string& toml,
                        std::vector<std::string> arguments);

/// Whether [comm] mode asks to simulate one rank of many in this process alone.
bool simulates_ranks(const JobSources& sources);

/// job.dump_folder; its default where what is given cannot be used.
std::string dump_folder_of(const JobSources& sources);

}  // namespace titan::core
