// The checks of titan doctor. Each adds rows to the findings and throws nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "finding.h"

namespace titan::commands {

/// What the job takes, as far as it is known.
struct JobNeeds {
  bool needs_gpu = false;
  std::optional<int64_t> bytes_of_ranks;        ///< predicted peak of the ranks of this machine
  std::optional<int64_t> bytes_of_checkpoints;  ///< all that are kept at the same time
};

/// LibTorch: the library that titan-train would load, its version, and whether it loads.
void check_torch(const std::filesystem::path& program, Findings& findings);
/// Every plugin file on the search path.
void check_plugins(const std::filesystem::path& program, const std::vector<std::string>& folders,
                   Findings& findings);
/// GPUs, driver, NCCL, /dev/shm. No library of NVIDIA is linked.
void check_gpus(const std::filesystem::path& program, const JobNeeds& needs, Findings& findings);
/// Memory of the machine, of the control group and of this process.
void check_memory(const JobNeeds& needs, Findings& findings);
/// Open files, processes, processors.
void check_limits(Findings& findings);
/// A folder that a run writes checkpoints into; it need not exist yet.
void check_folder(const std::filesystem::path& folder, const JobNeeds& needs, Findings& findings);
/// Clocks, and the clock of the folder's file system against that of this machine.
void check_clock(const std::filesystem::path& folder, Findings& findings);
/// Sockets on this machine, its name, and the ports that the environment names.
void check_network(Findings& findings);
/// Variables that ranks read, and the locale.
void check_environment(Findings& findings);
/// Checks the job by a dry run. Returns what it takes.
JobNeeds check_job(const std::filesystem::path& program, const std::vector<std::string>& job,
                   Findings& findings);

}  // namespace titan::commands
