// Activation checkpointing mode `memory_budget`: keeps results of operations up to a number of
// bytes, those with the most FLOPs per byte first.
#pragma once

#include "recompute.h"

namespace titan::recompute {

struct BudgetOptions : CommonOptions {
  double memory_budget = 0.5;
  int64_t kept_bytes = -1;
  bool visualize_memory_budget_pareto = false;
};

/// The first forward runs the first block once more to measure the sizes of the results.
class MemoryBudget final : public ActivationCheckpoint {
 public:
  MemoryBudget(const BudgetOptions& options, TransformContext) : options_(options) {}
  Phase phase() const override { return Phase::recompute; }
  void apply(ModelPart& part, const TransformContext& context) override;

 private:
  BudgetOptions options_;
};

}  // namespace titan::recompute
