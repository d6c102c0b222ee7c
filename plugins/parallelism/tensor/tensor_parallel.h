// Tensor parallelism with sequence and loss parallelism: cuts weights over the ranks of the mesh
// axis "tp". Shoeybi et al., 2019; Korthikanti et al., 2022.
#pragma once

#include <memory>

#include <titan/transform.h>

#include "model_layout.h"
#include "piecewise.h"

namespace titan::tensor_parallel {

struct TensorParallelOptions {
  bool sequence_parallel = true;  // outside of regions each rank holds its part of the sequence
  bool loss_parallel = true;      // the loss is computed from logits that stay cut
  bool async = false;             // overlap gathers and scatters with their products
};

/// Uses only the modules' layout hints (see model_layout.h).
///
/// With sequence parallelism the residual stream is (B, S/T, dim): the embedding's look-up is
/// reduce-scattered along the sequence, the input of regions is gathered and their output
/// reduce-scattered, and the head's input is gathered. Without it every rank holds (B, S, dim) and
/// partial sums are all-reduced. In both cases the loss and the gradients of uncut weights are the
/// same on all ranks.
class TensorParallel final : public Parallelism {
 public:
  TensorParallel(const TensorParallelOptions& options, TransformContext);

  Phase phase() const override { return Phase::partition; }
  /// Throws a config Error, before anything is changed, when the model does not fit the degree.
  void apply(ModelPart& part, const TransformContext& context) override;

 private:
  void cut_weights(const ModelLayout& layout, const dist::Group& group) const;
  void connect(const ModelLayout& layout, const dist::Group& group);
  void wrap_region(const RegionLayout& region, const dist::Group& group);
  void sum_gradients(ModelPart& part, const ModelLayout& layout,
                     const TransformContext& context) const;

  TensorParallelOptions options_;
  std::shared_ptr<PieceLink> link_;  // shared with the kernels; null without async
};

}  // namespace titan::tensor_parallel
