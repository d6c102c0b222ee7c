// Fused projection to the vocabulary and cross entropy, without storing all logits. Used by
// nn::OutputHead.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <titan/export.h>
#include <titan/ops/chunked_loss.h>

namespace titan::ops {

/// Σ over tokens of −log softmax(x · weightᵀ)[label]: the **sum**, a scalar in fp32 (double for a
/// double x).
///
/// x (N, dim), weight (V, dim) of one dtype, labels (N) int64 in 0 ... V-1 or kIgnoredLabel.
/// Processes chunks of rows in order; their size depends only on N and V. If a gradient is needed,
/// the same pass computes it (a chunk's logits are overwritten by their gradient) and saves it; the
/// backward scales it. Otherwise only the loss is computed. Differentiable once in x and weight.
/// Throws a config Error for shapes that do not match, a data Error for a label out of range.
TITAN_API at::Tensor linear_cross_entropy(const at::Tensor& x, const at::Tensor& weight,
                                          const at::Tensor& labels);

}  // namespace titan::ops
