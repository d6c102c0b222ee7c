// Expert parallelism: the routed experts of each nn::MixtureOfExperts are dealt to the ranks of the
// mesh axis "ep", to which tokens travel.
#pragma once

#include <cstdint>

#include <titan/transform.h>

namespace titan::expert_parallel {

struct ExpertParallelOptions {
  int64_t degree = 1;  // ranks that share the experts
};

/// "ep" takes the innermost ranks of cp, then of dp_shard: those see other tokens, so each has its
/// own to bring. Experts are the first dimension of their weights. Their gradients come from the
/// tokens of all ranks of "ep"; over what is left of "fsdp" data parallelism cuts and sums them.
class ExpertParallel final : public Parallelism {
 public:
  ExpertParallel(const ExpertParallelOptions& options, TransformContext) : options_(options) {}

  Phase phase() const override { return Phase::partition; }
  /// Throws a config Error where a layer's experts cannot be dealt evenly, or the whole model has
  /// none. A stage of a pipeline may have none.
  void apply(ModelPart& part, const TransformContext& context) override;

 private:
  ExpertParallelOptions options_;
};

}  // namespace titan::expert_parallel
