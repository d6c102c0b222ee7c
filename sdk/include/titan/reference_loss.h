// Optional interfaces of losses that compare the model with a frozen one ([reference]).
#pragma once

#include <ATen/core/Tensor.h>
#include <titan/export.h>
#include <titan/loss.h>

TITAN_OPTIONAL_HEADER(reference_loss);

namespace titan {

/// What a reference model is asked for, token by token.
enum class ReferenceOutput {
  none,             ///< nothing, as the loss is configured: there is no reference model
  log_likelihoods,  ///< Batch::reference (rows, seq_len), nats, 0 where a token has no target
  logits,           ///< Batch::reference (rows, seq_len, vocab)
};

/// Derive from it beside Loss or SequenceLoss.
class TITAN_API ComparesWithReference {
 public:
  virtual ~ComparesWithReference();
  /// [once] The same on all ranks.
  virtual ReferenceOutput reference_output() const = 0;
};

/// A loss of tokens that sees the reference model's logits of the same tokens.
class TITAN_API DistillationLoss : public Loss, public ComparesWithReference {
 public:
  ReferenceOutput reference_output() const final { return ReferenceOutput::logits; }
  /// Never called.
  RowsLoss of_rows(const at::Tensor& logits, const at::Tensor& labels) final;
  /// As Loss::of_rows; `reference` (n, vocab) fp32, not to be changed and without a graph.
  virtual RowsLoss of_rows_beside(const at::Tensor& logits, const at::Tensor& reference,
                                  const at::Tensor& labels) = 0;
};

}  // namespace titan
