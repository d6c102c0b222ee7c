// Reads a job's file and flags, before any component is known. Used by the commands and resolve.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <titan/settings/diagnostics.h>
#include <titan/settings/settings.h>

#include "core/plugin/catalog.h"

namespace titan::core {

/// The file's settings and the arguments, not checked against any schema yet.
struct JobSources {
  std::optional<std::string> config_file;  ///< from --job.config_file
  SettingList file;
  std::vector<std::string> arguments;
  std::vector<std::string> plugin_paths;  ///< [plugins] paths, for the plugin search
  /// [plugins] lock, or the lock file next to the configuration if it exists.
  std::optional<std::string> plugin_lock;
  bool allows_unsigned = false;  ///< [plugins] allow_unsigned
  Diagnostics found;             ///< mistakes in the file; resolve() reports them
};

/// Reads the file that `--job.config_file` names among `arguments` (argv after the program, the
/// command's name and the command's own flags). Throws a config Error when the file is missing or
/// not a file, and with the place for malformed TOML.
JobSources read_sources(std::vector<std::string> arguments);
/// The same from a text in memory; messages call it `name`.
JobSources read_sources(const std::string& name, const std::string& toml,
                        std::vector<std::string> arguments);

/// The plugins that the job may load: its search path and lock file. Throws a plugin or config
/// Error about the lock file.
Catalog plugin_catalog(const JobSources& sources);

/// Whether [comm] mode requests the simulation of one rank of many in this process.
bool simulates_ranks(const JobSources& sources);

/// job.dump_folder, or its default if the given value is invalid.
std::string dump_folder_of(const JobSources& sources);

}  // namespace titan::core
