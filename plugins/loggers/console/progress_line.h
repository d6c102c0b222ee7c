// The progress line at the bottom of a terminal. Used by the console logger.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <titan/logger.h>

#include "line_text.h"

namespace titan::loggers {

/// Estimates the speed from the times of recent steps.
class StepRate {
 public:
  /// `time`: seconds of a monotonic clock.
  void add(int64_t step, double time);
  /// Steps per second over the last half minute, or over fewer steps; none before the second step,
  /// because the first one warms up.
  std::optional<double> steps_per_second() const;

 private:
  std::deque<std::pair<int64_t, double>> times_;  // oldest first
};

/// Contents of the line; absent values are left out.
struct Progress {
  int64_t step = 0;
  int64_t num_steps = 0;  ///< 0 = unknown
  std::optional<double> seconds_left;
  std::optional<double> loss;  ///< last logged loss
  std::optional<double> tokens_per_second;
  std::optional<double> memory_gib;
};

/// "45s", "3m20s", "5h07m", "2d03h"; longer than 1000 days: ">1000d".
std::string time_text(double seconds);

/// `text`, which is printable, truncated after the last character that fits in `columns`.
std::string cut_to_columns(const std::string& text, size_t columns);

///   step 120/1000 12%  3m20s left  loss 7.36542  12,345 tokens/s  memory 1.70GiB
///
/// in at most `columns` columns of a terminal, without a line end.
std::string format_progress_line(const Progress& progress, size_t columns, Style style);

}  // namespace titan::loggers
