// status/rank_<r>.json: the state of each rank of a run, rewritten in place by the rank about once
// a second. Read by titan top and titan report.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <titan/export.h>

namespace titan {

/// Numbers that the rank did not report are NaN, counts -1.
struct TITAN_API RankStatus {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  int64_t rank = 0;
  int64_t world_size = -1;
  std::string host;
  int64_t pid = -1;
  double time = kUnknown;  ///< of the last update, seconds since 1970
  std::string state;       ///< starting, running, ended
  int64_t step = -1, steps = -1;
  std::string phase, doing;
  double waiting_seconds = kUnknown;    ///< for other ranks, up to `time`; 0: not waiting
  double tokens_per_second = kUnknown;  ///< of the whole job
  double step_seconds = kUnknown;
  double loss = kUnknown;
  double memory_bytes = kUnknown, memory_total = kUnknown;
  std::vector<std::pair<std::string, double>> phases;  ///< seconds per step, last logged interval

  /// Share of a step that is spent in communication, in [0, 1]; NaN if not reported.
  double communication_share() const;
};

/// Throws a data Error if the text is not a status, for example while it is being written.
TITAN_API RankStatus parse_rank_status(std::string_view text);

/// The rank in "rank_<r>" + `suffix`; absent for other names.
TITAN_API std::optional<int64_t> rank_in_name(std::string_view name, std::string_view suffix);

struct RankStatuses {
  std::vector<RankStatus> ranks;        ///< in order of rank
  std::vector<std::string> unreadable;  ///< "rank_3.json: why"
};

/// From all files in `run_folder`/status; empty if there is none. Opens files read-only; a file
/// that is being written is read again.
TITAN_API RankStatuses read_rank_statuses(const std::filesystem::path& run_folder);

}  // namespace titan
