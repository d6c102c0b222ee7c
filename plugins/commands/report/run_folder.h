// Everything that titan report shows of one run, read from its folder. Nothing that is missing or
// damaged ends the reading: it is named among the problems.
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

namespace titan::commands {

/// A step-<N> of the run's checkpoints.
struct SavedStep {
  int64_t step = 0;
  double time = 0;  ///< seconds since 1970; 0: not known
  int64_t bytes = 0, num_files = 0;
  std::string contents;  ///< "training", "weights"; what is wrong when it is not complete
  bool is_complete = false;
};

struct RunFolder {
  std::filesystem::path path;
  std::string name;  ///< the last part of the path
  Metrics metrics;
  std::map<std::string, std::string> config;  ///< "optimizer.lr" to its value as TOML writes it
  RunHistory history;
  std::vector<SavedStep> checkpoints;
  std::vector<RankTimeline> timelines;
  RankStatuses statuses;
  std::vector<std::string> problems;
};

/// Throws an io Error when `path` is no folder, or one in which no run has written anything.
RunFolder read_run_folder(const std::filesystem::path& path);

}  // namespace titan::commands
