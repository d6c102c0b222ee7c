// The line at the bottom of a terminal that tells how far a run is. Used by the console logger.
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

/// How many steps were done when.
class StepRate {
 public:
  /// `time`: seconds of a clock that never jumps.
  void add(int64_t step, double time);
  /// Steps per second over the last half minute, or as far back as two steps reach; none before the
  /// second step, for the first one warms up.
  std::optional<double> steps_per_second() const;

 private:
  std::deque<std::pair<int64_t, double>> times_;  // oldest first
};

/// What the line shows; what is absent is left out.
struct Progress {
  int64_t step = 0;
  int64_t num_steps = 0;  ///< 0 = not known
  std::optional<double> seconds_left;
  std::optional<double> loss;  ///< as logged last
  std::optional<double> tokens_per_second;
  std::optional<double> memory_gib;
};

/// "45s", "3m20s", "5h07m", "2d03h"; longer than 1000 days: ">1000d".
std::string time_text(double seconds);

/// `text`, which is printable, cut behind the last character that ends within `columns`.
std::string cut_to_columns(const std::string& text, size_t columns);

///   step 120/1000 12%  3m20s left  loss 7.36542  12,345 tokens/s  memory 1.70GiB
///
/// in at most `columns` columns of a terminal, without a line end.
std::string format_progress_line(const Progress& progress, size_t columns, Style style);

}  // namespace titan::loggers
