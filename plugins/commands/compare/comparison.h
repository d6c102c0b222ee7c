// Where two runs part: in their configurations, their data, their weights, their losses and, where
// tensors were traced, in which layer. Used by titan compare.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <titan/value.h>

#include "run_record.h"
#include "trace_comparison.h"

namespace titan::commands {

/// A key that the runs' configurations have different values of, as JSON; empty: not set.
struct ConfigDifference {
  std::string key, first, second;
};

/// A result that differs.
struct NumberDifference {
  std::string tag;
  double first = 0, second = 0;
};

/// By step: what both runs wrote down.
struct StepComparison {
  int64_t num_steps = 0;                      ///< that both have
  std::optional<int64_t> last_equal;          ///< before they part
  std::optional<int64_t> parts_at;            ///< the first step at which they differ
  std::vector<NumberDifference> differences;  ///< there; of numbers
};

struct WeightsComparison {
  int64_t num_weights = 0;             ///< that both have, at the start
  std::vector<std::string> different;  ///< of them
  std::vector<std::string> only_first, only_second;
};

struct Comparison {
  std::string first, second;  ///< folders
  double tolerance = 0;
  std::vector<ConfigDifference> config;  ///< that can change numbers
  int64_t num_harmless = 0;              ///< differences of configuration that cannot
  std::vector<ConfigDifference> start;   ///< of what their last starts found, where both tell
  int64_t num_start = 0;                 ///< things that both tell about their starts
  StepComparison numbers, tokens;
  WeightsComparison weights;
  TraceComparison tensors;

  /// In all that both wrote down; configurations may differ.
  bool are_same() const;
};

/// `tolerance`: how far numbers may be apart, relative to the larger one; 0: not at all. Throws a
/// data Error when the runs have nothing in common that could be compared.
Comparison compare(const RunRecord& a, const RunRecord& b, double tolerance);

/// For people, several lines.
std::string to_text(const Comparison& comparison);
Value to_value(const Comparison& comparison);

}  // namespace titan::commands
