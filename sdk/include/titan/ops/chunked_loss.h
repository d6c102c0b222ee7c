// Projection to the vocabulary and a loss on it, chunk by chunk of rows, without storing all
// logits. All such losses run through this code. Used by linear_cross_entropy on each device, by
// the output head for losses of plugins, and by tensor parallelism, whose chunks hold a shard of
// the vocabulary.
#pragma once

#include <cstdint>
#include <functional>

#include <ATen/core/Tensor.h>
#include <titan/export.h>

namespace titan::ops {

/// Tokens with this label do not contribute to the loss.
inline constexpr int64_t kIgnoredLabel = -100;

/// Loss of one chunk of rows, summed over them: a double scalar.
/// `logits` (n, words) in fp32 (double for double). With `gradient` they are overwritten by their
/// own gradient, zero for ignored rows. `labels` (n).
using ChunkLoss =
    std::function<at::Tensor(const at::Tensor& logits, const at::Tensor& labels, bool gradient)>;

/// Memory limit for a chunk's fp32 logits, in bytes, for losses that consist of many operations.
inline constexpr int64_t kComposedLogitsBytes = int64_t{32} << 20;

/// Rows per chunk, equal except for the last: as few chunks as possible whose fp32 logits over
/// `num_words` take at most `bytes`, or which have at most 512 rows, because small chunks make the
/// matrix products slow. At least 1. Depends only on the three numbers, so that sums have the same
/// order with any number of threads and on all ranks.
TITAN_API int64_t chunk_rows(int64_t num_rows, int64_t num_words, int64_t bytes);

/// A loss and its gradients for an incoming gradient of 1; gradients that are not needed are
/// undefined.
struct LossAndGradients {
  at::Tensor loss;  ///< scalar, fp32 (double for a double x)
  at::Tensor dx;    ///< like x; the contribution of the rows of `weight`
  at::Tensor dweight;
};

/// Σ over chunks of chunk_loss(x · weightᵀ) in one pass, with the gradients that are needed.
/// Records no graph. Losses and dweight are added up in the order of the chunks, losses in double,
/// dweight in fp32 (double for double).
///
/// x (N, dim), weight (words, dim) of one dtype, labels (N) int64.
TITAN_API LossAndGradients run_chunks(const at::Tensor& x, const at::Tensor& weight,
                                      const at::Tensor& labels, int64_t rows_per_chunk,
                                      const ChunkLoss& chunk_loss, bool needs_dx,
                                      bool needs_dweight);

/// The same, differentiable once in x and weight: the forward computes the gradients and saves
/// them; the backward scales them. If no graph is recorded, only the loss is computed.
TITAN_API at::Tensor chunked_loss(const at::Tensor& x, const at::Tensor& weight,
                                  const at::Tensor& labels, int64_t rows_per_chunk,
                                  const ChunkLoss& chunk_loss);

using ComputeLoss = std::function<LossAndGradients(bool needs_dx, bool needs_dweight)>;
/// Records the graph of a loss of x and weight whose gradients `compute` returns with it. They are
/// saved until the backward, which scales and returns them. `operation` is its name in errors.
TITAN_API at::Tensor with_ready_gradients(const at::Tensor& x, const at::Tensor& weight,
                                          const char* operation, const ComputeLoss& compute);

/// Throws a data Error for the first of `labels` (N) that is neither in [0, vocab_size) nor
/// kIgnoredLabel. Checks on the CPU only, because on other devices reading values would wait for
/// the device.
TITAN_API void check_labels(const at::Tensor& labels, int64_t vocab_size);

}  // namespace titan::ops
