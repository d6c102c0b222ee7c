// Keeps as many results of operations as a number of bytes allows, those first that cost the most
// work per byte: mode = "memory_budget".
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "recompute.h"

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

struct BudgetOptions : CommonOptions {
  double memory_budget = 0.5;
  int64_t kept_bytes = -1;
};

/// What blocks may keep is measured at the first forward: one more run of the first block.
class MemoryBudget final : public ActivationCheckpoint {
 public:
  MemoryBudget(const BudgetOptions& options, TransformContext) : options_(options) {}
  Phase phase() const override { return Phase::recompute; }
  void apply(ModelPart& part, const TransformContext& context) override;

 private:
  BudgetOptions options_;
};

}  // namespace titan::recompute
