// Assembles a job without starting it, to report all mistakes that its components find at once.
// Used by --dry-run, and to complete the report of a job that cannot start.
#pragma once

#include <memory>

#include <titan/settings/diagnostics.h>

#include "core/config/schema/job_config.h"
#include "core/plugin/registry.h"
#include "core/train/assembly/assembly.h"

namespace titan::core {

struct DryRunOptions {
  int rank = 0;             ///< the simulated rank
  bool reads_files = true;  ///< opens the tokenizer, and data that are not large
};

/// Simulates `rank` of the job and adds its mistakes to `diagnostics`, each at its place. `config`
/// may come from resolve_partly(): parts that cannot be judged because of an earlier mistake are
/// skipped. Returns the simulated run, null when there is none. Nothing is trained or written.
///
/// Errors of other kinds, such as a damaged tokenizer, are thrown if there are no mistakes.
std::unique_ptr<Run> dry_run(const JobConfig& config, Registry& registry,
                             const DryRunOptions& options, Diagnostics& diagnostics);

}  // namespace titan::core
