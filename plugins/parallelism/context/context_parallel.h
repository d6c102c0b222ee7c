// Context parallelism: cuts each sequence over the ranks of the mesh axis "cp". Liu et al., 2023;
// the cut that balances the work of the ranks: Grattafiori et al., 2024.
#pragma once

#include <titan/transform.h>

#include "exchange.h"
#include "sequence_cut.h"

namespace titan::context_parallel {

struct ContextParallelOptions {
  RotateMethod rotate_method = RotateMethod::allgather;  // how keys and values are exchanged
  LoadBalancer load_balancer = LoadBalancer::headtail;   // which tokens a rank gets
};

/// Cuts the tokens of each batch and replaces the kernel of every nn::AttentionLayer; the new
/// kernel applies the same rule. All other layers work token by token and stay unchanged. Gradients
/// of weights are sums over the ranks, which data parallelism computes (its axis "fsdp" spans
/// "cp").
class ContextParallel final : public Parallelism, public BatchSplitter {
 public:
  ContextParallel(const ContextParallelOptions& options, TransformContext context);

  Phase phase() const override { return Phase::sequence; }
  /// Throws a config Error when the whole model has no nn::AttentionLayer, because tokens would not
  /// see those of other ranks. A pipeline stage may have none.
  void apply(ModelPart& part, const TransformContext& context) override;

  /// tokens, labels and positions (rows, S) -> this rank's (rows, S/C). Creates missing positions,
  /// since they no longer follow from the index, and sets the tokens' places in the whole row.
  /// documents -> whole rows in rank order. Throws a config Error when S cannot be cut, a data
  /// Error when documents do not ascend.
  Batch split(const Batch& batch) const override;

 private:
  ContextParallelOptions options_;
  SequenceCut cut_;
  int64_t rank_;
};

}  // namespace titan::context_parallel
