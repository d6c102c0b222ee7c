// Keeps as many results of operations as a number of bytes allows, those first that cost the most
// work per byte: mode = "memory_budget".
#pragma once

#include "recompute.h"

namespace titan::recompute {

struct BudgetOptions : CommonOptions {
  double memory_budget = 0.5;
  int64_t kept_bytes = -1;
  bool visualize_memory_budget_pareto = false;
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
