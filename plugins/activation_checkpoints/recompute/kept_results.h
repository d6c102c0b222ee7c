// Which results of operations fit into a budget of bytes: those first that cost the most work per
// byte. Used by mode = "memory_budget" and by its drawing.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include <titan/recompute.h>

namespace titan::recompute {

/// A result that one run of a block makes.
struct Candidate {
  Operation operation;
  int64_t bytes = 0;
};

/// For each of `num_blocks` equal blocks the places of the candidates that it keeps, `budget` bytes
/// in all at most: candidates in the order of work per byte (what comes from other ranks first), of
/// equal ones the earlier, each in as many blocks as there is room for, the first blocks before the
/// last. A candidate that does not fit any more leaves room for the next.
std::vector<std::set<size_t>> choose_within(int64_t budget,
                                            const std::vector<Candidate>& candidates,
                                            size_t num_blocks);

}  // namespace titan::recompute
