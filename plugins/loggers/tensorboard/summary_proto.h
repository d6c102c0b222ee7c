// What TensorBoard's plugins beside scalars and text read, serialised. Used by the tensorboard
// logger.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <titan/logger.h>
#include <titan/value.h>

namespace titan::loggers {

/// Each function gives one serialised message `Event`. Times are in seconds since 1970.

/// All histograms of a step: buckets with their edges and counts.
std::string histograms_event(double wall_time, int64_t step, std::span<const Histogram> histograms);

/// Hyperparameters by name: numbers, strings, booleans; others are left out.
using Hparams = std::vector<std::pair<std::string, Value>>;
/// A session of the HParams dashboard begins, in a group of its own. Metrics are the scalars of its
/// folder.
std::string hparams_start_event(double start_time, const Hparams& hparams);
/// Finished is success; a run that was stopped has the status "unknown", for it may go on.
std::string hparams_end_event(double end_time, RunOutcome outcome);

/// A chart of the custom scalars dashboard: all scalars whose tag one of the regular expressions
/// fits from its begin to its end.
struct Chart {
  std::string title;
  std::vector<std::string> tags;
};
std::string custom_scalars_event(double wall_time, int64_t step, const std::string& category,
                                 std::span<const Chart> charts);

}  // namespace titan::loggers
