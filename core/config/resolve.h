// Turns argv and a TOML file into a checked, resolved job, or into one report of all mistakes. Used
// by every command that takes a configuration:
//
//   const JobSources sources = read_sources(arguments);  // syntax errors throw here
//   const Catalog catalog = plugin_catalog(sources);
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
  bool looks_for_files = true;  ///< the job runs on this machine: its input files must exist
  bool picks_device = true;     ///< the job runs on this machine, which decides what "auto" is
};

struct Resolution {
  JobConfig config;
  std::vector<Diagnostic> messages;  ///< warnings and notes, in the order of the sources
};

/// Checks everything and resolves. Throws a ConfigError with the complete report of all mistakes.
Resolution resolve(const JobSources& sources, ComponentLookup& lookup,
                   const ResolveOptions& options = {});

/// For callers that check more: the job as far as it could be resolved in spite of errors. Invalid
/// or missing values keep their defaults or are left out; `places` marks them.
JobConfig resolve_partly(const JobSources& sources, ComponentLookup& lookup,
                         const ResolveOptions& options, Diagnostics& diagnostics);

/// resolve() without throwing: every diagnostic goes to `diagnostics`. Returns no job after an
/// error. Features that are merely not built yet are no error here, so that a configuration for a
/// later Titan can still be examined.
std::optional<JobConfig> try_resolve(const JobSources& sources, ComponentLookup& lookup,
                                     const ResolveOptions& options, Diagnostics& diagnostics);

}  // namespace titan::core
