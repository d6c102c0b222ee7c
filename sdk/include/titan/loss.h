// Plugin kind `loss`: what the output head computes instead of its own cross entropy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/batch.h>
#include <titan/export.h>

namespace titan {

/// What the run lends to a loss.
struct LossContext {
  int64_t vocab_size = 0;  ///< of the model
};

/// The loss of some rows.
struct RowsLoss {
  at::Tensor sum;                 ///< over the rows, a scalar, made of the logits by autograd
  std::vector<at::Tensor> parts;  ///< as Loss::part_names: sums over the rows, scalars; for the log
};

/// Computes the loss of tokens from their logits. The head gives it a chunk of tokens at a time,
/// differentiates the sum and drops the chunk, so that the logits of a batch never exist; the sum
/// over all chunks and ranks is divided by the number of tokens that have a target. So a token's
/// loss depends on its own row alone, and one without a target (Batch::kIgnoredLabel) adds nothing.
///
/// The logits are whole in the vocabulary under every layout: tensor parallelism gathers the
/// columns of a chunk, all its ranks compute the same, and each keeps the gradient of its own
/// columns. Thread: the one that runs the head. Stateless between calls, since a step may be run
/// again.
class TITAN_API Loss {
 public:
  static constexpr const char* kKind = "loss";
  using Interface = Loss;
  using Context = LossContext;

  /// The part that is Σ −log softmax(logits)[label] in nats, as the model means its logits. A loss
  /// that gives it has perplexity and bits per byte reported in validation; others have not.
  static constexpr const char* kNegativeLogLikelihood = "nll";

  virtual ~Loss();

  /// [once] Names of the parts, each logged as loss_metrics/<name>, and in validation as
  /// validation_metrics/<name>: sum / number of tokens with a target. The same on all ranks.
  virtual std::vector<std::string> part_names() const { return {}; }

  /// `logits` (n, vocab) in fp32 (double where the model computes in double), not to be changed;
  /// `labels` (n) int64 on the same device, of the vocabulary or Batch::kIgnoredLabel. In training
  /// a graph is recorded, in validation none; on simulated ranks tensors are on the meta device.
  /// Give sums in double where the device has it: a chunk may have thousands of rows.
  virtual RowsLoss of_rows(const at::Tensor& logits, const at::Tensor& labels) = 0;
};

}  // namespace titan
