// Prepares the folder that holds all files of a run. Used by the assembly.
#pragma once

#include "core/base/folder_lock.h"
#include "core/config/schema/job_config.h"
#include "core/train/assembly/earlier_files.h"

namespace titan::core {

/// Throws an io Error when job.dump_folder clearly cannot be made. Writes nothing.
void check_run_folder(const JobConfig& config);

/// Makes job.dump_folder, takes its lock, keeps the files of an earlier run, and writes the
/// resolved configuration into it as config.toml (and as JSON into job.save_config_file if set).
/// Throws an io Error naming the path on failure, and as FolderLock::take.
void prepare_run_folder(const JobConfig& config, FolderStart start, FolderLock& lock);

}  // namespace titan::core
