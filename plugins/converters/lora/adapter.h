// The pair of small matrices beside a linear layer, or beside each expert of a layer of experts.
// Used by the LoRA converter.
#pragma once

#include <memory>

#include <titan/dist/mesh.h>
#include <titan/nn/grouped_linear.h>
#include <titan/nn/linear.h>

namespace titan::lora {

/// What a layer of weight W (out, in) gets on top: scale · B A, A (rank, in), B (out, rank). Of a
/// layer of experts, W (E, out, in), each has its own: A (E, rank, in), B (E, out, rank). Both
/// belong to that layer as the weights of its children "lora_a" and "lora_b".
struct Adapter {
  nn::Parameter& a;
  nn::Parameter& b;
  double scale = 1;

  /// scale · (B A) for `slice` of W, in float32 (float64 where the adapter is). Collective over the
  /// groups that cut A or B.
  at::Tensor delta(const nn::Slice& slice, const dist::Mesh& mesh) const;
};

/// Freezes nothing itself: attaches an adapter of `rank` to `layer` and puts a kernel around its
/// present one, so that the layer computes W x + scale · B (A x). A starts as normal(0, 1/rank), B
/// as zero, so training starts from the base.
///
/// Cut as its layer is: of a column layer B has the columns' layout and A is whole, of a row layer
/// A has the rows' and B is whole. The adapter lives as long as the layer.
std::shared_ptr<const Adapter> attach_adapter(nn::Linear& layer, int64_t rank, double scale);

/// The same for each expert. A and B are grouped layers themselves, cut along the experts by
/// whoever cuts the experts so (nn::GroupedExperts::stacks).
std::shared_ptr<const Adapter> attach_adapter(nn::GroupedLinear& layer, int64_t rank, double scale);

}  // namespace titan::lora
