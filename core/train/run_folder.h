// The folder that everything of a run is written into.
#pragma once

#include "core/config/job_config.h"

namespace titan::core {

/// Throws an io Error when it is plain that job.dump_folder cannot be made. Writes nothing.
void check_run_folder(const JobConfig& config);

/// Makes job.dump_folder, writes the resolved configuration into it as config.toml (and as JSON
/// into job.save_config_file when that is set). Throws an io Error naming the path when that fails.
void prepare_run_folder(const JobConfig& config);

}  // namespace titan::core
