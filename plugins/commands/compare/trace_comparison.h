// Finds the first tensor that differs between the traces of two runs. Used by comparison.h.
#pragma once

#include <optional>
#include <string>

#include "run_record.h"

namespace titan::commands {

/// The same tensor in both runs.
struct TensorPair {
  TracedTensor first, second;
};

struct TraceComparison {
  int64_t num_steps = 0;      ///< traced by both runs
  int64_t last_step = 0;      ///< the last step compared: the first with a difference
  int64_t num_tensors = 0;    ///< compared in `last_step`
  int64_t num_different = 0;  ///< tensors that differ
  /// Tensors of `last_step` without a counterpart: only one run has them, or runs of different
  /// layouts hold parts whose sums are not comparable.
  int64_t num_unmatched = 0;
  bool by_rank = true;                 ///< equal layouts: rank by rank; else sums over ranks
  std::optional<TensorPair> parts_at;  ///< the first difference, in order of computation
  std::optional<TracedTensor> before;  ///< the last equal tensor before it
};

/// `tolerance`: 0: bitwise; else the allowed difference of statistics, relative to the magnitude of
/// the values. Throws a data Error when ranks of one run hold different copies of a weight.
TraceComparison compare_traces(const RunRecord& a, const RunRecord& b, double tolerance);

/// A tensor as messages name it: "the output of layers.1.attention.wo".
std::string words_of(const TracedTensor& tensor);

}  // namespace titan::commands
