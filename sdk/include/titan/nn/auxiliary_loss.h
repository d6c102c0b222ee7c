// Losses that arise within layers and are added to the main one: balance of experts, z-loss. They
// enter as gradients where they arise, so a pipeline, which knows the loss of the last stage alone,
// and recomputation need not know of them. Method: Megatron-LM's MoEAuxLossAutoScaler.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>
#include <titan/batch.h>
#include <titan/export.h>

namespace titan {

/// Those of one run of a step on this rank. Made by whoever runs the microbatches
/// (StepBatches::auxiliary_losses), handed to layers in each Batch. Thread: the one that runs
/// forward.
class TITAN_API AuxiliaryLosses {
 public:
  /// `gradient_factor`: what the gradient of a loss sum starts from, that of the main loss alike:
  /// 1 / valid tokens of the global step, times the scale of gradients.
  explicit AuxiliaryLosses(double gradient_factor) : gradient_factor_(gradient_factor) {}

  double gradient_factor() const { return gradient_factor_; }
  /// Adds `share` of `loss_sum`, a tensor of one element.
  void add(const at::Tensor& loss_sum, double share);
  bool has_any() const { return sum_.defined(); }
  /// Of all that were added; none where there was none. Waits for the device.
  std::optional<double> sum() const;

 private:
  double gradient_factor_;
  at::Tensor sum_;  // double, on the layers' device; undefined: nothing was added
};

namespace nn {

/// `x`, whose backward starts that of `loss_sum` too, as if it had been added to the main loss.
///
/// `loss_sum` (one element; float32 or wider): the sum over the tokens of this microbatch as this
/// layer sees them, with its coefficient; like the main loss it is divided by the valid tokens of
/// the global step. Ranks of data and context parallelism see different tokens, whose sums add up.
/// Where ranks of tensor parallelism see the same ones (Batch::copies) each counts a share, so the
/// layer gives the whole sum everywhere. Called in every step or in none: in the first step a run
/// settles whether it logs loss_metrics/global_avg_auxiliary_loss, the sum over all ranks and
/// layers divided by the valid tokens. Outside of training (no gradients, no step) it is `x` and
/// nothing else.
TITAN_API at::Tensor with_auxiliary_loss(const at::Tensor& x, const at::Tensor& loss_sum,
                                         const Batch& batch);

}  // namespace nn
}  // namespace titan
