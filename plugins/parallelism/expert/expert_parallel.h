// Expert parallelism: distributes the routed experts of each nn::MixtureOfExperts over the ranks of
// the mesh axis "ep" and sends tokens to them. Experts may also be cut over the ranks of "tp".
#pragma once

#include <cstdint>

#include <titan/axes.h>
#include <titan/transform.h>

namespace titan::expert_parallel {

struct ExpertParallelOptions {
  int64_t degree = 1;         // ranks that share the experts
  int64_t tensor_degree = 1;  // ranks that share each expert: 1, or all of tensor parallelism
};

/// The axis "ep" takes the innermost ranks of tp, then of cp, then of dp_shard; if each expert is
/// cut over tp, of cp and dp_shard only. The group "ep-of-tp" is its intersection with tp.
void declare_axes(const ExpertParallelOptions& options, AxisPlan& plan);

/// The first dimension of expert weights is the expert. w1 and w3 may be cut along the second
/// dimension over "tp", w2 along the third. Gradients come from the tokens of all ranks of "ep".
/// Data parallelism shards the weights and sums the gradients over the rest of "fsdp", tensor
/// parallelism sums them over the rest of "tp".
class ExpertParallel final : public Parallelism {
 public:
  ExpertParallel(const ExpertParallelOptions& options, TransformContext) : options_(options) {}

  Phase phase() const override { return Phase::partition; }
  /// Throws a config Error if a layer's experts cannot be distributed or cut evenly, if they have
  /// weights that this plugin cannot cut, or if the whole model has no experts. A pipeline stage
  /// may have none.
  void apply(ModelPart& part, const TransformContext& context) override;

 private:
  ExpertParallelOptions options_;
};

}  // namespace titan::expert_parallel
