// The scalars of a run by step, from metrics.jsonl, and their reduction to few points. Used by
// titan report.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <titan/export.h>

namespace titan {

/// One scalar over the steps at which it was logged. Steps rise; values may be NaN or infinite.
struct Series {
  std::vector<int64_t> steps;
  std::vector<double> values;
};

/// By tag.
using SeriesByTag = std::map<std::string, Series>;

struct Metrics {
  SeriesByTag series;
  int64_t num_unreadable = 0;  ///< malformed lines
};

/// Parses all complete lines of `text`. If a step is logged again, its last line counts.
TITAN_API Metrics parse_metrics(std::string_view text);
/// From `run_folder`/metrics.jsonl, or the file of rank 0 if every rank has its own. Empty if there
/// is none.
TITAN_API Metrics read_metrics(const std::filesystem::path& run_folder);

/// Neighbouring points of a series, combined over the finite values; NaN if there are none.
struct Bucket {
  int64_t first_step = 0, last_step = 0;
  double lowest = 0, highest = 0, mean = 0;
};

/// At most `most` (> 0) buckets with nearly equal numbers of points; extremes are kept.
TITAN_API std::vector<Bucket> to_buckets(const Series& series, size_t most);

}  // namespace titan
