// A job is put together without starting it, to find what its components find wrong with it: all of
// it at once. Used by --dry-run, and to complete the report of a job that cannot start.
#pragma once

#include <memory>

#include <titan/settings/diagnostics.h>

#include "core/config/schema/job_config.h"
#include "core/plugin/registry.h"
#include "core/train/assembly/assembly.h"

namespace titan::core {

struct DryRunOptions {
  int rank = 0;             ///< which is simulated
  bool reads_files = true;  ///< opens the tokenizer, and data that is not large
};

/// Simulates `rank` of the job and adds to `diagnostics` what is wrong with it, each mistake at its
/// place. `config` may be one of resolve_partly(): what an earlier mistake makes undecidable is
/// left out. Returns the simulated run, null when there is none. Nothing is trained or written.
///
/// Errors of other kinds, such as a damaged tokenizer, are thrown when nothing else is wrong.
std::unique_ptr<Run> dry_run(const JobConfig& config, Registry& registry,
                             const DryRunOptions& options, Diagnostics& diagnostics);

}  // namespace titan::core
