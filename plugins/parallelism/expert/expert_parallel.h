// Expert parallelism: the routed experts of each nn::MixtureOfExperts are dealt to the ranks of the
// mesh axis "ep", to which tokens travel, and may be cut over the ranks of "tp".
#pragma once

#include <cstdint>

#include <titan/axes.h>
#include <titan/transform.h>

namespace titan::expert_parallel {

struct ExpertParallelOptions {
  int64_t degree = 1;         // ranks that share the experts
  int64_t tensor_degree = 1;  // ranks that share each expert: 1, or all of tensor parallelism
};

/// The axis "ep" takes the innermost ranks of tp, then of cp, then of dp_shard; where each expert
/// is cut over tp, of cp and dp_shard alone. Its part of tp is the group "ep-of-tp".
void declare_axes(const ExpertParallelOptions& options, AxisPlan& plan);

/// Experts are the first dimension of their weights; w1 and w3 may be cut along the second over
/// "tp", w2 along the third. Their gradients come from the tokens of all ranks of "ep"; over what
/// is left of "fsdp" data parallelism cuts and sums them, over what is left of "tp" tensor
/// parallelism sums them.
class ExpertParallel final : public Parallelism {
 public:
  ExpertParallel(const ExpertParallelOptions& options, TransformContext) : options_(options) {}

  Phase phase() const override { return Phase::partition; }
  /// Throws a config Error where a layer's experts cannot be dealt evenly or cut evenly, have
  /// weights that nobody here knows how to cut, or the whole model has none. A stage of a pipeline
  /// may have none.
  void apply(ModelPart& part, const TransformContext& context) override;

 private:
  ExpertParallelOptions options_;
};

}  // namespace titan::expert_parallel
