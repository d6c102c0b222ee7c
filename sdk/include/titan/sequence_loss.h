// Optional interface of losses: of whole sequences, by how likely the model finds their tokens.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <titan/batch.h>
#include <titan/export.h>
#include <titan/loss.h>

TITAN_OPTIONAL_HEADER(sequence_loss);

namespace titan {

/// A loss that is no sum over tokens, such as those that compare answers. The head computes the
/// log-likelihood of each token, chunk by chunk; the loss makes one number of them, and what it
/// differentiates to weighs the tokens in a second pass over the chunks, so that the logits of a
/// batch never exist here either. A run with one isolates documents, so Batch::documents is there.
/// Refused under parallelisms that cut sequences.
class TITAN_API SequenceLoss : public Loss {
 public:
  /// Never called.
  RowsLoss of_rows(const at::Tensor& logits, const at::Tensor& labels) final;

  /// Of one microbatch. `log_likelihoods` (rows, seq_len), nats, fp32 (double where the model
  /// computes in double): log softmax(logits)[label], 0 where a token has no target; in training a
  /// leaf that records a graph. `batch` as the head got it: labels, documents, reference.
  virtual RowsLoss of_sequences(const at::Tensor& log_likelihoods, const Batch& batch) = 0;

  /// How many terms the loss of `batch` adds up: a step's loss is the sum over all ranks divided by
  /// that of these numbers. [on the host, before the batch is on the device]
  virtual int64_t num_terms(const Batch& batch) const = 0;

  /// Whether it compares two answers to one prompt, the chosen one and the rejected one. A run of
  /// such a loss has data of preferences, and data of preferences have such a loss, or nothing
  /// starts.
  virtual bool compares_answers() const { return false; }
};

}  // namespace titan
