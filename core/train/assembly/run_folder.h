// The folder that everything of a run is written into.
#pragma once

#include "core/base/folder_lock.h"
#include "core/config/schema/job_config.h"
#include "core/train/assembly/earlier_files.h"

namespace titan::core {

/// Throws an io Error when it is plain that job.dump_folder cannot be made. Writes nothing.
void check_run_folder(const JobConfig& config);

/// Makes job.dump_folder, takes its lock, keeps what an earlier run left there, and writes the
/// resolved configuration into it as config.toml (and as JSON into job.save_config_file when that
/// is set). Throws an io Error naming the path when that fails, and as FolderLock::take.
void prepare_run_folder(const JobConfig& config, FolderStart start, FolderLock& lock);

}  // namespace titan::core
