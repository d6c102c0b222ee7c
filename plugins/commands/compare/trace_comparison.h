// Where the tensors of two runs part, by their traces. Used by comparison.h.
#pragma once

#include <optional>
#include <string>

#include "run_record.h"

namespace titan::commands {

/// One tensor as both runs had it.
struct TensorPair {
  TracedTensor first, second;
};

struct TraceComparison {
  int64_t num_steps = 0;      ///< that both have traced
  int64_t last_step = 0;      ///< of them that was compared: the first one with a difference
  int64_t num_tensors = 0;    ///< compared in `last_step`
  int64_t num_different = 0;  ///< of them
  /// Tensors of `last_step` that only one run has, or that runs of different layouts hold in pieces
  /// that do not add up to the same.
  int64_t num_unmatched = 0;
  bool by_rank = true;  ///< layouts are equal: each rank's tensors; else sums over ranks
  std::optional<TensorPair> parts_at;  ///< the first that differs, in the order of the computation
  std::optional<TracedTensor> before;  ///< the last that is equal before it
};

/// `tolerance`: 0: to the bit; else how far statistics may be apart, relative to what the values
/// reach. Weights of which ranks of one run hold different copies are a data Error.
TraceComparison compare_traces(const RunRecord& a, const RunRecord& b, double tolerance);

/// "the output of layers.1.attention.wo": as the run would say it
std::string words_of(const TracedTensor& tensor);

}  // namespace titan::commands
