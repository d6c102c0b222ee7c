// Projection to the words of one rank and the loss, chunk by chunk of tokens. Used by the head
// kernels, which differ in how ranks agree on a chunk's loss.
#pragma once

#include <cstdint>
#include <functional>

#include <ATen/core/Tensor.h>

namespace titan::tensor_parallel {

/// Loss of one chunk of tokens, summed over them: a double scalar, the same on all ranks.
/// `logits` (n, local words) in fp32 (double for double); with `gradient` they become their own
/// gradient in place, zero where the label is ignored. `labels` (n).
using ChunkLoss =
    std::function<at::Tensor(const at::Tensor& logits, const at::Tensor& labels, bool gradient)>;

/// Tokens per chunk, equal but for the last, such that their logits over `vocab_size` words stay
/// small: a function of the two numbers alone, so the same on all ranks.
int64_t chunk_rows(int64_t num_rows, int64_t vocab_size);

/// Σ over chunks of chunk_loss(x · weightᵀ): a scalar in fp32 (double for a double x).
///
/// x (N, dim), weight (local words, dim), labels (N). When a gradient is needed it is computed in
/// the same pass, kept until the backward and scaled there: of x only the part that comes from this
/// rank's words. Differentiable once.
at::Tensor chunked_loss(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& labels,
                        int64_t rows_per_chunk, const ChunkLoss& chunk_loss);

}  // namespace titan::tensor_parallel
