// Optional interfaces of losses that compare the model with a frozen one ([reference]).
#pragma once

#include <ATen/core/Tensor.h>
#include <titan/export.h>
#include <titan/loss.h>

TITAN_OPTIONAL_HEADER(reference_loss);

namespace titan {

/// The outputs of a reference model that a loss needs, token by token.
enum class ReferenceOutput {
  none,             ///< the loss, as configured, needs no reference model; none is loaded
  log_likelihoods,  ///< Batch::reference (rows, seq_len), nats, 0 where a token has no target
  logits,           ///< Batch::reference (rows, seq_len, vocab)
};

/// Derive from it in addition to Loss or SequenceLoss.
class TITAN_API ComparesWithReference {
 public:
  virtual ~ComparesWithReference();
  /// [once] The same on all ranks.
  virtual ReferenceOutput reference_output() const = 0;
};

/// A token loss that compares the model's logits with the reference model's logits of the same
/// tokens.
class TITAN_API DistillationLoss : public Loss, public ComparesWithReference {
 public:
  ReferenceOutput reference_output() const final { return ReferenceOutput::logits; }
  /// Never called.
  RowsLoss of_rows(const at::Tensor& logits, const at::Tensor& labels) final;
  /// As Loss::of_rows; `reference` (n, vocab) fp32, read-only, without an autograd graph.
  virtual RowsLoss of_rows_beside(const at::Tensor& logits, const at::Tensor& reference,
                                  const at::Tensor& labels) = 0;
};

}  // namespace titan
