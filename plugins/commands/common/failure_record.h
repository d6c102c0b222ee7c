// launch_failures.jsonl in a run's folder: the failures that titan launch saw, one line each.
// Written by titan launch, read by titan report.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace titan::commands {

inline constexpr const char* kFailuresName = "launch_failures.jsonl";

struct FailureRecord {
  double time = 0;  ///< seconds since 1970
  int64_t rank = 0, world_size = 0;
  std::optional<int64_t> step;
  std::string how;       ///< "was ended by signal 9 (SIGKILL)"
  std::string error;     ///< the rank's message, if it gave one
  std::string seen;      ///< the message of another rank, if the rank gave none
  std::string log;       ///< of the rank
  std::string response;  ///< "restart 1 of 5", "ended: ..."
};

/// What ended the rank: "hang" (found by watcher 'hangs'), "signal" or "error".
const char* kind_of(const FailureRecord& failure);

/// Appends a line. Throws an io Error.
void append_failure(const std::filesystem::path& run_folder, const FailureRecord& record);

struct FailureRecords {
  std::vector<FailureRecord> records;
  int64_t num_unreadable = 0;  ///< malformed lines
};
/// Empty if there is no such file. Throws an io Error if it cannot be read.
FailureRecords read_failures(const std::filesystem::path& run_folder);

}  // namespace titan::commands
