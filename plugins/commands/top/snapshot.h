// The state of all ranks of a run at one moment, from their status files, with a mark on each rank
// that needs attention. Used by titan top.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <titan/runs/rank_status.h>

namespace titan::commands {

/// Why a rank needs attention, the most serious reason first.
enum class RankMark {
  silent,   ///< it has not ended, and its last status is old
  awaited,  ///< it works, and at least half of the other ranks have waited for some time
  behind,   ///< at least two steps behind the furthest rank
  slowest,  ///< it waits at most half as long as the median rank: the others wait for it in every
            ///< step
  none,
  ended,
};

struct RankRow {
  RankStatus status;
  RankMark mark = RankMark::none;
  double age = 0;  ///< seconds since its last status; NaN: unknown
};

struct RunSnapshot {
  std::vector<RankRow> rows;  ///< in order of rank
  int64_t num_missing = 0;    ///< ranks of the run that have written no status
  int64_t num_unreadable = 0;
  int64_t step = -1, steps = -1;  ///< of the furthest rank; -1: unknown
  double step_seconds = RankStatus::kUnknown, tokens_per_second = RankStatus::kUnknown;
  double loss = RankStatus::kUnknown;
  double goodput = RankStatus::kUnknown;  ///< in [0, 1]

  int64_t count(RankMark mark) const;
  /// Estimate from the duration of recent steps; NaN: unknown.
  double seconds_left() const;
};

/// A rank without a newer status for this long is silent. "For some time" above is as long.
inline constexpr double kSilentSeconds = 5;

/// A rank writes its status once a second: an older status may be out of date, and its age is
/// shown.
inline constexpr double kFreshSeconds = 3;

/// `now`: seconds since 1970.
RunSnapshot to_snapshot(RankStatuses statuses, double now);

/// Sort key of the rows; the largest or worst first, equal rows by rank. By step the lowest is
/// first.
enum class RankOrder { worst, rank, step, waiting, memory };
void sort_rows(std::vector<RankRow>& rows, RankOrder order);

}  // namespace titan::commands
