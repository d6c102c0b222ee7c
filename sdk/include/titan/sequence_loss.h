// Optional interface of losses over whole sequences, computed from the log-likelihoods of their
// tokens.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <titan/batch.h>
#include <titan/export.h>
#include <titan/loss.h>

TITAN_OPTIONAL_HEADER(sequence_loss);

namespace titan {

/// A loss that is not a sum over tokens, such as one that compares answers. The head computes the
/// log-likelihood of each token, chunk by chunk, and the loss computes one number from them. The
/// gradients with respect to the log-likelihoods weight the tokens in a second pass over the
/// chunks. So the logits of a whole batch never exist in memory.
///
/// A run with such a loss isolates documents, so Batch::documents is set. Refused under
/// parallelisms that shard sequences.
class TITAN_API SequenceLoss : public Loss {
 public:
  /// Never called.
  RowsLoss of_rows(const at::Tensor& logits, const at::Tensor& labels) final;

  /// The loss of one microbatch. `log_likelihoods` (rows, seq_len), nats, fp32 (fp64 where the
  /// model computes in it): log softmax(logits)[label], 0 where a token has no target; in training
  /// a leaf that requires gradients. `batch`: as the head received it, with labels, documents and
  /// reference.
  virtual RowsLoss of_sequences(const at::Tensor& log_likelihoods, const Batch& batch) = 0;

  /// [on the host, before the batch is copied to the device] The number of terms in the loss of
  /// `batch`. A step's loss is the sum over all ranks divided by the sum of these numbers.
  virtual int64_t num_terms(const Batch& batch) const = 0;

  /// Whether it compares two answers to one prompt, chosen and rejected. Such a loss requires
  /// preference data, and preference data require such a loss; otherwise the run does not start.
  virtual bool compares_answers() const { return false; }
};

}  // namespace titan
