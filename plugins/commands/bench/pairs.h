// Runs two sides of a benchmark alternately and evaluates the ratios of their figures. Used by
// `titan bench`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "figures.h"
#include "statistics.h"

namespace titan::commands {

/// The ratios of a figure, A over B, one for each pair of runs.
struct BenchRatio {
  std::string name;           ///< "tokens_per_second"
  std::vector<double> pairs;  ///< in the order of the runs
  MedianInterval middle;      ///< of `pairs`, 95 %

  /// "above 1", "below 1", or "inconclusive" when the interval contains 1 or does not exist.
  const char* verdict() const;
};

struct BenchPairs {
  std::vector<BenchFigures> a, b;  ///< a[i] and b[i] are one pair
};

/// Order of runs: A B, B A, A B, ..., so that drift of the machine affects both sides equally.
/// `run` is called with true for A; `done` after each pair.
BenchPairs run_pairs(int64_t num_pairs, const std::function<BenchFigures(bool)>& run,
                     const std::function<void(const BenchPairs&)>& done);

/// Ratios of tokens_per_second, peak_bytes, to_first_step, of instructions, cycles and cpu_seconds
/// per token, and of gemm_flops as a control that should be 1. Figures that one side lacks are left
/// out.
std::vector<BenchRatio> ratios_of(const BenchPairs& pairs);

std::string to_text(const std::vector<BenchRatio>& ratios);
Value to_value(const std::vector<BenchRatio>& ratios);

}  // namespace titan::commands
