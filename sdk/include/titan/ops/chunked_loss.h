// Projection to the vocabulary and a loss of it, chunk by chunk of rows, without the logits in
// memory: the one driver of every such loss. Used by linear_cross_entropy on each device, by the
// output head for losses of plugins, and by tensor parallelism, whose chunks hold some of the
// words.
#pragma once

#include <cstdint>
#include <functional>

#include <ATen/core/Tensor.h>
#include <titan/export.h>

namespace titan::ops {

/// Tokens with this label add nothing to the loss.
inline constexpr int64_t kIgnoredLabel = -100;

/// Loss of one chunk of rows, summed over them: a double scalar.
/// `logits` (n, words) in fp32 (double for double); with `gradient` they become their own gradient
/// in place, zero where a row does not count. `labels` (n).
using ChunkLoss =
    std::function<at::Tensor(const at::Tensor& logits, const at::Tensor& labels, bool gradient)>;

/// Logits that exist at a time where a chunk's loss is made of many operations, in bytes of fp32.
inline constexpr int64_t kComposedLogitsBytes = int64_t{32} << 20;

/// Rows per chunk, equal but for the last, such that the fp32 logits of a chunk over `num_words`
/// take at most `bytes`, but no fewer than 512 rows, which would make the matrix products slow. At
/// least 1. A function of the three numbers alone, so that sums have the same order with any number
/// of threads, and on all ranks.
TITAN_API int64_t chunk_rows(int64_t num_rows, int64_t num_words, int64_t bytes);

/// A loss and its gradients for an incoming gradient of 1; those that are not needed are undefined.
struct LossAndGradients {
  at::Tensor loss;  ///< scalar, fp32 (double for a double x)
  at::Tensor dx;    ///< as x: what comes from the words of `weight`
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

/// The same, differentiable once in x and weight: gradients are computed in the forward, kept until
/// the backward and scaled there. Without a graph to record only the loss is computed.
TITAN_API at::Tensor chunked_loss(const at::Tensor& x, const at::Tensor& weight,
                                  const at::Tensor& labels, int64_t rows_per_chunk,
                                  const ChunkLoss& chunk_loss);

using ComputeLoss = std::function<LossAndGradients(bool needs_dx, bool needs_dweight)>;
/// The graph of a loss of x and weight whose gradients `compute` gives with it: kept until the
/// backward, scaled there and handed over. `operation` names it in errors.
TITAN_API at::Tensor with_ready_gradients(const at::Tensor& x, const at::Tensor& weight,
                                          const char* operation, const ComputeLoss& compute);

/// Throws a data Error for the first of `labels` (N) that is neither below `vocab_size` nor
/// kIgnoredLabel. On the CPU alone: elsewhere reading values would wait for the device.
TITAN_API void check_labels(const at::Tensor& labels, int64_t vocab_size);

}  // namespace titan::ops
