// The LoRA adapter of a linear layer or of each expert of a layer of experts. Used by the LoRA
// converter.
#pragma once

#include <memory>

#include <titan/dist/mesh.h>
#include <titan/nn/grouped_linear.h>
#include <titan/nn/linear.h>

namespace titan::lora {

/// The matrices whose scaled product is added to a weight W (out, in): scale · B A, A (rank, in), B
/// (out, rank). Each expert of W (E, out, in) has its own: A (E, rank, in), B (E, out, rank). A and
/// B are the weights of the layer's children "lora_a" and "lora_b".
struct Adapter {
  nn::Parameter& a;
  nn::Parameter& b;
  double scale = 1;

  /// scale · (B A) for `slice` of W, in float32 (float64 if the adapter is float64). Collective
  /// over the groups that shard A or B.
  at::Tensor delta(const nn::Slice& slice, const dist::Mesh& mesh) const;
};

/// Attaches an adapter of `rank` to `layer` and wraps the layer's kernel, so that the layer
/// computes W x + scale · B (A x). Does not freeze W. A starts as normal(0, 1/rank), B as zero, so
/// training starts from the base model.
///
/// Sharded as its layer: for a column layer B has the column layout and A is replicated, for a row
/// layer A has the row layout and B is replicated. The adapter lives as long as the layer.
std::shared_ptr<const Adapter> attach_adapter(nn::Linear& layer, int64_t rank, double scale);

/// The same for each expert. A and B are grouped layers, sharded along the experts together with
/// the experts' weights (nn::GroupedExperts::stacks).
std::shared_ptr<const Adapter> attach_adapter(nn::GroupedLinear& layer, int64_t rank, double scale);

}  // namespace titan::lora
