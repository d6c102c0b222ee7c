// Keeps the files of an earlier run in job.dump_folder that a start would overwrite. Used when the
// run folder is prepared.
#pragma once

#include <filesystem>

#include "core/config/schema/job_config.h"

namespace titan::core {

/// How a start relates to the files in its folder.
enum class FolderStart {
  from_nothing,  ///< at step 0
  new_branch,    ///< it returns to an earlier step of its job
  continuation,  ///< it continues: every file is appended to
};

/// [rank 0] Does nothing for a continuation, or if no earlier run has written results.
///
/// from_nothing: moves the results of the earlier run, its configuration and its records into
/// `<dump_folder>/earlier/<its start time, as YYYYmmdd-HHMMSS>`, itself a run folder that titan
/// report, compare and top read. Checkpoints and TensorBoard's folders stay: a start never
/// overwrites them. If the history shows that the same job died before its first checkpoint, the
/// history also stays and continues. new_branch: copies the files whose later steps the run is
/// about to truncate.
///
/// Returns the folder, empty if nothing was done. Throws an io Error.
std::filesystem::path keep_earlier_files(const JobConfig& config, FolderStart start);

}  // namespace titan::core
