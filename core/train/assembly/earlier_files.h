// Keeps what an earlier run wrote into job.dump_folder where a start would overwrite it. Used when
// the run folder is prepared.
#pragma once

#include <filesystem>

#include "core/config/schema/job_config.h"

namespace titan::core {

/// How a start stands to what lies in its folder.
enum class FolderStart {
  from_nothing,  ///< at step 0
  new_branch,    ///< it goes back to an earlier step of its job
  continuation,  ///< it continues: every file is appended to
};

/// [rank 0] Nothing is done for a continuation, nor where no earlier run has written results.
///
/// from_nothing: moves the results of the earlier run, its configuration and its records into
/// `<dump_folder>/earlier/<when it began, as YYYYmmdd-HHMMSS>`, itself a run folder that titan
/// report, compare and top read. Checkpoints and TensorBoard's folders stay: a start never
/// overwrites them. Where the history says that the same job died before its first checkpoint, the
/// history stays, too, and continues. new_branch: copies the files whose later steps the run is
/// about to cut off.
///
/// Gives the folder, which is empty where nothing was done. Throws an io Error.
std::filesystem::path keep_earlier_files(const JobConfig& config, FolderStart start);

}  // namespace titan::core
