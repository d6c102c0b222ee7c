// Projection to the vocabulary and cross entropy in one, without the logits in memory. Used by
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
/// x (N, dim), weight (V, dim) of one dtype, labels (N) int64 in 0 ... V-1 or kIgnoredLabel. Works
/// on chunks of rows, cut by N and V alone, in their order. When a gradient is needed it is
/// computed in the same pass (a chunk's logits become their own gradient in place), kept until the
/// backward and scaled there; without gradients only the loss is computed. Differentiable once in x
/// and weight. Throws config Error on shapes that do not fit, data Error for a label outside of the
/// range.
TITAN_API at::Tensor linear_cross_entropy(const at::Tensor& x, const at::Tensor& weight,
                                          const at::Tensor& labels);

}  // namespace titan::ops
