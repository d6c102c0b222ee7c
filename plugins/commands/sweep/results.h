// The result of a sweep: for each case the mean of its seeds with a 95 % confidence interval, as
// Markdown, CSV, JSON and SVG. Used by titan sweep.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <titan/value.h>

#include "statistics.h"
#include "sweep_runs.h"

namespace titan::commands {

struct RunResult {
  int64_t seed = 0;
  std::string folder;
  SweepRun::State state = SweepRun::State::fresh;
  std::optional<double> value;  ///< of a finished run; may be NaN or infinite
};

struct CaseResult {
  SweepCase the_case;
  std::vector<RunResult> runs;
  SeedStatistics statistics;  ///< of the finished runs

  int num_missing() const;  ///< runs that have not finished
};

struct SweepResult {
  SweepMetric metric;
  std::vector<std::string> keys;  ///< that any case sets, in order of first use
  std::vector<CaseResult> cases;
};

/// Reads the metrics of all finished runs.
SweepResult collect(const SweepFile& sweep, const std::vector<SweepRun>& runs);

std::string to_markdown(const SweepResult& result);
/// One line per case, RFC 4180; numbers are exact.
std::string to_csv(const SweepResult& result);
Value to_value(const SweepResult& result);
/// A row per case: a dot per seed, a bar for the interval, a tick for the mean.
std::string to_svg(const SweepResult& result);

/// Writes sweep.md, sweep.csv, sweep.json and sweep.svg into `folder`, each renamed into place.
void write_results(const SweepResult& result, const std::filesystem::path& folder);

}  // namespace titan::commands
