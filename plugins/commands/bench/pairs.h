// Two sides of a benchmark, run in turns, and what their ratios say. Used by `titan bench`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "figures.h"
#include "statistics.h"

namespace titan::commands {

/// A figure of A over the same figure of B, pair by pair.
struct BenchRatio {
  std::string name;           ///< "tokens_per_second"
  std::vector<double> pairs;  ///< in their order
  MedianInterval middle;      ///< of `pairs`, 95 %

  /// "above 1", "below 1", or "inconclusive" when the interval holds 1 or there is none.
  const char* verdict() const;
};

struct BenchPairs {
  std::vector<BenchFigures> a, b;  ///< of one pair at the same index
};

/// A B, B A, A B, ...: what drifts while they run adds to both sides alike. `run` is called with
/// true for A; `done` after each pair.
BenchPairs run_pairs(int64_t num_pairs, const std::function<BenchFigures(bool)>& run,
                     const std::function<void(const BenchPairs&)>& done);

/// tokens_per_second, peak_bytes, to_first_step, and per token instructions, cycles and
/// cpu_seconds; gemm_flops last, which should not differ. Those that a side does not tell are left
/// out.
std::vector<BenchRatio> ratios_of(const BenchPairs& pairs);

std::string to_text(const std::vector<BenchRatio>& ratios);
Value to_value(const std::vector<BenchRatio>& ratios);

}  // namespace titan::commands
