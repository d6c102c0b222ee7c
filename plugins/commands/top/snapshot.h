// A run as its ranks tell it at one moment, and which of them stand out. Used by titan top.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <titan/runs/rank_status.h>

namespace titan::commands {

/// What stands out about a rank, the worst first.
enum class RankMark {
  silent,   ///< it has not ended, and its last sign of life is old
  awaited,  ///< it works, and most others have been waiting for some time
  behind,   ///< at an earlier step than others, by two or more
  slowest,  ///< it waits less than half as much as most others: they wait for it in every step
  none,
  ended,
};

struct RankRow {
  RankStatus status;
  RankMark mark = RankMark::none;
  double age = 0;  ///< seconds since its last sign of life; NaN when it told no time
};

struct RunSnapshot {
  std::vector<RankRow> rows;  ///< in order of rank
  int64_t num_missing = 0;    ///< ranks of the run that have written no status
  int64_t num_unreadable = 0;
  int64_t step = -1, steps = -1;  ///< of the rank that is furthest; -1: not told
  double step_seconds = RankStatus::kUnknown, tokens_per_second = RankStatus::kUnknown;
  double loss = RankStatus::kUnknown;
  double goodput = RankStatus::kUnknown;  ///< in [0, 1]

  int64_t count(RankMark mark) const;
  /// Until the last step at the pace of the last ones; NaN when not known.
  double seconds_left() const;
};

/// A rank is silent when it has said nothing for this long, and others wait "for some time" then.
inline constexpr double kSilentSeconds = 5;

/// A rank writes its status once a second: an older status may be out of date, and its age is
/// shown.
inline constexpr double kFreshSeconds = 3;

/// `now`: seconds since 1970.
RunSnapshot to_snapshot(RankStatuses statuses, double now);

/// What rows are sorted by; the largest or worst first, equals by rank.
enum class RankOrder { worst, rank, step, waiting, memory };
void sort_rows(std::vector<RankRow>& rows, RankOrder order);

}  // namespace titan::commands
