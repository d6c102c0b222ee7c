// Computes the loss of a component in the output head, chunk by chunk, in place of the head's own
// cross entropy. Used by OutputHead.
#pragma once

#include <functional>
#include <vector>

#include <titan/batch.h>
#include <titan/loss.h>
#include <titan/ops/chunked_loss.h>

namespace titan::nn {

/// Log-likelihoods for rows of logits.
struct Likelihoods {
  at::Tensor logs;              ///< (n): log softmax(logits)[label], 0 where a row has no target
  at::Tensor exponential_sums;  ///< (n)
};
/// `logits` (n, vocab) become exp(logits - their maximum) in place. `labels` (n), int64.
Likelihoods likelihoods_in_place(const at::Tensor& logits, const at::Tensor& labels);

/// The operations of a head that a loss needs.
struct ChunksOfHead {
  /// HeadKernel::loss_sum_by of the batch's tokens; chunks arrive in the order of the rows.
  std::function<at::Tensor(const ops::ChunkLoss&)> sum;
  /// HeadLoss::take_parts; may be empty.
  std::function<void(const std::vector<at::Tensor>& parts)> take_parts;
};

/// The value of `loss` for a batch with labels: a scalar, with a graph if one is recorded. A Loss
/// is called once for each chunk of rows, a DistillationLoss with the same rows of
/// Batch::reference. A SequenceLoss is called once for all rows: a first pass over the chunks,
/// without a graph, collects the tokens' log-likelihoods. The loss's derivatives by them are the
/// weights of a second pass, which computes the gradients. Throws a plugin Error for a loss that
/// breaks its contract.
at::Tensor loss_by_component(Loss& loss, const ChunksOfHead& chunks, const Batch& batch);

}  // namespace titan::nn
