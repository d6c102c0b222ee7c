// The Slurm array script of a sweep: each task is one run. Used by titan sweep --slurm.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sweep_runs.h"

namespace titan::commands {

/// A bash script for sbatch that starts `runs` as tasks 0 to n - 1 of an array. A task that ends
/// with exit code 75 is requeued. `program`: the path of titan; `folder`: the working directory.
std::string slurm_array_script(const SweepFile& sweep, const std::vector<SweepRun>& runs,
                               const std::filesystem::path& program,
                               const std::filesystem::path& folder);

}  // namespace titan::commands
