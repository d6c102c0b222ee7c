// Plugin kind `loss`: a loss that the output head computes instead of cross entropy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/batch.h>
#include <titan/export.h>

namespace titan {

/// Inputs of a loss.
struct LossContext {
  int64_t vocab_size = 0;  ///< of the model
};

/// The loss of some rows.
struct RowsLoss {
  at::Tensor sum;                 ///< over the rows; a scalar, differentiable in the logits
  std::vector<at::Tensor> parts;  ///< of Loss::part_names, each a scalar sum over the rows; logged
};

/// Computes the loss of tokens from their logits. The head passes one chunk of tokens at a time,
/// differentiates the sum and frees the chunk, so that the logits of a whole batch never exist. The
/// sum over all chunks and ranks is divided by the number of tokens with a label. Therefore a
/// token's loss depends on its own row only, and a token without a label (Batch::kIgnoredLabel)
/// adds nothing.
///
/// The logits cover the whole vocabulary under every layout: tensor parallelism gathers the columns
/// of a chunk, all its ranks compute the same loss, and each keeps the gradient of its own columns.
/// Thread: the one that runs the head. Stateless between calls, because a step may be repeated.
class TITAN_API Loss {
 public:
  static constexpr const char* kKind = "loss";
  using Interface = Loss;
  using Context = LossContext;

  /// The part that is Σ −log softmax(logits)[label] in nats, of the model's unchanged logits.
  /// Validation reports perplexity and bits per byte only for losses with this part.
  static constexpr const char* kNegativeLogLikelihood = "nll";

  virtual ~Loss();

  /// [once] Names of the parts, each logged as loss_metrics/<name>, and in validation as
  /// validation_metrics/<name>: sum / number of tokens with a label. The same on all ranks.
  virtual std::vector<std::string> part_names() const { return {}; }

  /// `logits`: (n, vocab) in fp32 (double if the model computes in double), read-only. `labels`:
  /// (n) int64 on the same device, token ids or Batch::kIgnoredLabel. Autograd records in training,
  /// not in validation. On simulated ranks tensors are on the meta device. Return sums in double if
  /// the device supports it: a chunk may have thousands of rows.
  virtual RowsLoss of_rows(const at::Tensor& logits, const at::Tensor& labels) = 0;
};

}  // namespace titan
