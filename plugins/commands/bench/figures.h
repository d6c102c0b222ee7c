// Results of one benchmark run, of Titan or of another program that reports its own figures.
// docs/guides/bench.md describes the JSON.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <titan/runs/timeline.h>
#include <titan/value.h>

#include "measured_child.h"

namespace titan::commands {

/// Which steps of a run are measured.
struct BenchSteps {
  int64_t warmup = 3;  ///< at the beginning, not measured
  int64_t measured = 10;
  int64_t interval = 1;  ///< steps per measured time

  int64_t all() const { return warmup + measured; }
};

/// Bytes that ranks sent in one step.
struct BenchTraffic {
  int64_t step = 0;  ///< the step whose traffic was read; 0: none
  int64_t bytes_of_all_ranks = 0;
  int64_t busiest_rank = 0;       ///< the rank that sent most; `rows` are of this rank
  std::vector<StepTraffic> rows;  ///< by group and operation
};

struct BenchFigures {
  std::string command, device, build;
  int64_t ranks = 1;
  int64_t parameters = 0;      ///< 0: unknown
  double tokens_per_step = 0;  ///< of all ranks
  std::string compute_dtype;   ///< "float32"; empty: unknown
  std::string device_name;     ///< "cpu"; empty: unknown

  std::vector<double> step_seconds;  ///< of measured steps; with an interval means
  double tokens_per_second = 0;      ///< of all ranks, from the median step
  std::optional<double> to_first_step, to_first_step_end;  ///< seconds since the launch
  std::optional<double> flops_full, flops_causal;          ///< per token, forward and backward
  std::optional<double> peak_flops;                        ///< of all ranks, as published or given
  std::optional<double> gemm_flops;  ///< of all ranks at once, measured next to the run
  double peak_bytes = 0;             ///< of the rank with the highest peak
  BenchTraffic traffic;
  std::optional<CpuCounts> per_step;      ///< of all ranks, in the measured steps
  std::string counters_refused;           ///< why some counts are missing
  double cpu_seconds = 0;                 ///< of the whole run, all ranks
  std::map<std::string, double> medians;  ///< of every scalar logged in measured steps

  /// Model FLOPs per second as a share of `peak`; none where either value is unknown.
  std::optional<double> share_of(const std::optional<double>& flops_per_token,
                                 const std::optional<double>& peak) const;
};

/// Of a Titan run that wrote into `folder`. Throws a data Error when the run did not complete its
/// steps.
BenchFigures figures_of_titan(const std::filesystem::path& folder, const MeasuredRun& run,
                              const BenchSteps& steps);
/// Of another program, from the last JSON line with "tokens_per_second" on its standard output.
/// Throws a data Error that names a missing or non-numeric value.
BenchFigures figures_of_other(const MeasuredRun& run, const BenchSteps& steps);

/// For people, several lines.
std::string to_text(const BenchFigures& figures, const BenchSteps& steps);
Value to_value(const BenchFigures& figures);

}  // namespace titan::commands
