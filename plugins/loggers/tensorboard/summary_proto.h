// Serializes data of TensorBoard's other plugins: histograms, HParams, custom scalars. Used by the
// tensorboard logger.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <titan/logger.h>
#include <titan/value.h>

namespace titan::loggers {

/// Each function returns one serialized message `Event`. Times are in seconds since 1970.

/// All histograms of a step: buckets with their edges and counts.
std::string histograms_event(double wall_time, int64_t step, std::span<const Histogram> histograms);

/// Hyperparameters by name: numbers, strings, booleans; others are left out.
using Hparams = std::vector<std::pair<std::string, Value>>;
/// Starts a session of the HParams dashboard, in its own group. Its metrics are the scalars of its
/// folder.
std::string hparams_start_event(double start_time, const Hparams& hparams);
/// A finished run has the status success. A stopped run has "unknown", because it may be resumed.
std::string hparams_end_event(double end_time, RunOutcome outcome);

/// A chart of the custom scalars dashboard, with all scalars whose whole tag matches one of the
/// regular expressions.
struct Chart {
  std::string title;
  std::vector<std::string> tags;
};
std::string custom_scalars_event(double wall_time, int64_t step, const std::string& category,
                                 std::span<const Chart> charts);

}  // namespace titan::loggers
