// Chooses the results that fit into a budget of bytes, those with the most FLOPs per byte first.
// Used by mode = "memory_budget" and its plot.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include <titan/recompute.h>

namespace titan::recompute {

/// A result of one operation in a run of a block.
struct Candidate {
  Operation operation;
  int64_t bytes = 0;
};

/// For each of `num_blocks` equal blocks the indices of the candidates that it keeps; at most
/// `budget` bytes in all. Candidates are taken in descending FLOPs per byte, results from other
/// ranks before all, ties in the order of the list. Each is kept in as many blocks as fit, first
/// blocks first. A candidate that does not fit is skipped.
std::vector<std::set<size_t>> choose_within(int64_t budget,
                                            const std::vector<Candidate>& candidates,
                                            size_t num_blocks);

}  // namespace titan::recompute
