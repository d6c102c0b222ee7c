// Context parallelism: each sequence is cut over the ranks of the mesh axis "cp". Liu et al., 2023;
// the cut that gives all ranks the same work: Grattafiori et al., 2024.
#pragma once

#include <titan/transform.h>

#include "exchange.h"
#include "sequence_cut.h"

namespace titan::context_parallel {

struct ContextParallelOptions {
  RotateMethod rotate_method = RotateMethod::allgather;  // how keys and values travel
  LoadBalancer load_balancer = LoadBalancer::headtail;   // which tokens a rank gets
};

/// Cuts the tokens of each batch and swaps the kernel of every nn::AttentionLayer, whose rule the
/// new one follows. All other layers work token by token and stay as they are; gradients of weights
/// are sums over the ranks, which data parallelism adds up (its axis "fsdp" spans "cp").
class ContextParallel final : public Parallelism, public BatchSplitter {
 public:
  ContextParallel(const ContextParallelOptions& options, TransformContext context);

  Phase phase() const override { return Phase::sequence; }
  /// Throws a config Error when the whole model has no nn::AttentionLayer: nothing would see
  /// across ranks. A stage of a pipeline may have none.
  void apply(ModelPart& part, const TransformContext& context) override;

  /// tokens, labels and positions (rows, S) -> (rows, S/C), this rank's; positions that were not
  /// there are made, since they no longer follow from the place, and places in the whole row are
  /// told. documents -> whole rows in rank order. Throws a config Error when S cannot be cut, a
  /// data Error when documents do not ascend.
  Batch split(const Batch& batch) const override;

 private:
  ContextParallelOptions options_;
  SequenceCut cut_;
  int64_t rank_;
};

}  // namespace titan::context_parallel
