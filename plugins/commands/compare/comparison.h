// Finds where two runs diverge: in configuration, data, initial weights, losses and, where tensors
// were traced, in which layer. Used by titan compare.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <titan/value.h>

#include "run_record.h"
#include "trace_comparison.h"

namespace titan::commands {

/// A configuration key with different values in the two runs, as JSON; empty: not set.
struct ConfigDifference {
  std::string key, first, second;
};

/// A logged number that differs.
struct NumberDifference {
  std::string tag;
  double first = 0, second = 0;
};

/// Comparison of a quantity that both runs recorded by step.
struct StepComparison {
  int64_t num_steps = 0;                      ///< steps that both runs have
  std::optional<int64_t> last_equal;          ///< the last equal step before they diverge
  std::optional<int64_t> parts_at;            ///< the first step that differs
  std::vector<NumberDifference> differences;  ///< of numbers, at that step
};

struct WeightsComparison {
  int64_t num_weights = 0;             ///< initial weights that both have
  std::vector<std::string> different;  ///< names of common weights that differ
  std::vector<std::string> only_first, only_second;
};

struct Comparison {
  std::string first, second;  ///< folders
  double tolerance = 0;
  std::vector<ConfigDifference> config;  ///< only keys that can change numbers
  int64_t num_harmless = 0;              ///< number of differing keys that cannot change numbers
  std::vector<ConfigDifference> start;   ///< differences between the last starts
  int64_t num_start = 0;                 ///< values that both starts recorded
  StepComparison numbers, tokens;
  WeightsComparison weights;
  TraceComparison tensors;

  /// In everything that both runs recorded. Configurations may differ.
  bool are_same() const;
};

/// `tolerance`: allowed difference of numbers, relative to the larger one; 0: none. Throws a data
/// Error when the runs have nothing in common to compare.
Comparison compare(const RunRecord& a, const RunRecord& b, double tolerance);

/// For people, several lines.
std::string to_text(const Comparison& comparison);
Value to_value(const Comparison& comparison);

}  // namespace titan::commands
