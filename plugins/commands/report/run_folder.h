// Reads everything that titan report shows of a run from its folder. Missing or damaged files do
// not stop it; they are listed in `problems`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <titan/runs/event.h>
#include <titan/runs/rank_status.h>
#include <titan/runs/series.h>
#include <titan/runs/timeline.h>

#include "../common/failure_record.h"

namespace titan::commands {

/// A checkpoint step-<N> of the run.
struct SavedStep {
  int64_t step = 0;
  double time = 0;  ///< seconds since 1970; 0: unknown
  int64_t bytes = 0, num_files = 0;
  std::string contents;  ///< "training", "weights"; the problem when it is not complete
  bool is_complete = false;
};

struct RunFolder {
  std::filesystem::path path;
  std::string name;  ///< the last component of the path
  Metrics metrics;
  std::map<std::string, std::string> config;  ///< e.g. "optimizer.lr" to its value in TOML
  RunHistory history;
  std::vector<SavedStep> checkpoints;
  std::vector<RankTimeline> timelines;
  RankStatuses statuses;
  std::vector<FailureRecord> failures;  ///< that titan launch saw
  std::vector<std::string> problems;
};

/// Throws an io Error when `path` is not a folder or holds no files of a run.
RunFolder read_run_folder(const std::filesystem::path& path);

}  // namespace titan::commands
