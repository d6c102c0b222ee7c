// What several loggers need to know about their place in a run. Header only, see output_file.h.
#pragma once

#include <chrono>

#include <titan/logger.h>

namespace titan::loggers {

/// Whether every rank writes files of its own ([metrics] save_for_all_ranks), which then need the
/// rank in their names.
inline bool has_files_per_rank(const RunInfo& run) {
  const Value* metrics = run.config.find("metrics");
  const Value* all_ranks = metrics ? metrics->find("save_for_all_ranks") : nullptr;
  return all_ranks && all_ranks->is_boolean() && all_ranks->as_boolean();
}

/// Seconds since 1970.
inline double wall_time_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

}  // namespace titan::loggers
