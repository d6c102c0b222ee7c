// Settings of a run that several loggers need. Header only, see output_file.h.
#pragma once

#include <chrono>

#include <titan/logger.h>

namespace titan::loggers {

/// Whether every rank writes its own files ([metrics] save_for_all_ranks), whose names then contain
/// the rank.
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
