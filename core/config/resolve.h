// From argv and a TOML file to a checked, resolved job, or to one report of everything that is
// wrong. Used by every command that takes a configuration:
//
//   const JobSources sources = read_sources(arguments);  // syntax errors throw here
//   const Catalog catalog(plugin_search_path(sources.plugin_paths));
//   Registry registry(catalog);
//   RegistryLookup lookup(catalog, registry);  // registry_lookup.h
//   const Resolution resolution = resolve(sources, lookup, {.world_size = 1});
//   for (const Diagnostic& d : resolution.messages) log::warn(render_for_log(d));
//   const JobConfig& config = resolution.config;
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <titan/error.h>
#include <titan/settings/diagnostics.h>
#include <titan/settings/settings.h>

#include "core/config/schema/component_lookup.h"
#include "core/config/schema/job_config.h"

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

/// Whether [comm] mode asks to play one rank of many in this process alone.
bool plays_ranks(const JobSources& sources);

/// job.dump_folder; its default where what is given cannot be used.
std::string dump_folder_of(const JobSources& sources);

struct ResolveOptions {
  int world_size = 1;           ///< ranks that will run; with --dry-run any number
  bool looks_for_files = true;  ///< the job runs here: files that it reads must be here
  bool picks_device = true;     ///< the job runs here: this machine decides what "auto" is
};

struct Resolution {
  JobConfig config;
  std::vector<Diagnostic> messages;  ///< warnings and notes, in the order of the sources
};

/// Checks everything and resolves. Throws ConfigError with the complete report when anything is
/// wrong.
Resolution resolve(const JobSources& sources, ComponentLookup& lookup,
                   const ResolveOptions& options = {});

/// For callers that look further: the job as far as it could be worked out, whatever was found to
/// be wrong. What is unsound or was not found is left at its default or out; `places` knows it.
JobConfig resolve_partly(const JobSources& sources, ComponentLookup& lookup,
                         const ResolveOptions& options, Diagnostics& diagnostics);

/// resolve() without throwing: every diagnostic goes to `diagnostics`. The job is absent when there
/// is an error; what is merely not built yet leaves it in place, so that a configuration for a
/// later Titan can still be examined.
std::optional<JobConfig> try_resolve(const JobSources& sources, ComponentLookup& lookup,
                                     const ResolveOptions& options, Diagnostics& diagnostics);

}  // namespace titan::core
