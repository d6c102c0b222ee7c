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

#include "core/config/schema/component_lookup.h"
#include "core/config/schema/job_config.h"
#include "core/config/sources/job_sources.h"

namespace titan::core {

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
