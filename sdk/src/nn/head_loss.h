// The loss that the output head computes by a component instead of its own cross entropy, chunk by
// chunk. Used by OutputHead.
#pragma once

#include <functional>
#include <vector>

#include <titan/batch.h>
#include <titan/loss.h>
#include <titan/ops/chunked_loss.h>

namespace titan::nn {

/// Of rows of logits.
struct Likelihoods {
  at::Tensor logs;              ///< (n): log softmax(logits)[label], 0 where a row has no target
  at::Tensor exponential_sums;  ///< (n)
};
/// `logits` (n, words) become exp(logits - their maximum) in place. `labels` (n), int64.
Likelihoods likelihoods_in_place(const at::Tensor& logits, const at::Tensor& labels);

/// The head as a loss sees it.
struct ChunksOfHead {
  /// HeadKernel::loss_sum_by of the batch's tokens; chunks come in the order of the rows.
  std::function<at::Tensor(const ops::ChunkLoss&)> sum;
  /// HeadLoss::take_parts; may be empty.
  std::function<void(const std::vector<at::Tensor>& parts)> take_parts;
};

/// What `loss` makes of a batch with labels: a scalar, with a graph where one is recorded. A Loss
/// is asked once for each chunk of rows, a DistillationLoss beside the same rows of
/// Batch::reference. A SequenceLoss is asked once for all: the first pass over the chunks, without
/// a graph, collects the tokens' log-likelihoods; what the loss differentiates to weighs them in a
/// second pass, which gives the gradients. Throws a plugin Error for a loss that breaks its
/// contract.
at::Tensor loss_by_component(Loss& loss, const ChunksOfHead& chunks, const Batch& batch);

}  // namespace titan::nn
