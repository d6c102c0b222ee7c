// Losses that arise inside layers and are added to the main loss: load balance of experts, z-loss.
// Their gradients enter the backward at the layer itself. So recomputation, and pipeline ranks
// without the main loss, need no special handling. Method: Megatron-LM's MoEAuxLossAutoScaler.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>
#include <titan/batch.h>
#include <titan/export.h>

namespace titan {

/// The auxiliary losses of one run of a step on this rank. The executor makes them
/// (StepBatches::auxiliary_losses) and passes them to layers in each Batch. Thread: the one that
/// runs forward.
class TITAN_API AuxiliaryLosses {
 public:
  /// `gradient_factor`: the initial gradient of a loss sum, the same as for the main loss: gradient
  /// scale / valid tokens of the global step.
  explicit AuxiliaryLosses(double gradient_factor) : gradient_factor_(gradient_factor) {}

  double gradient_factor() const { return gradient_factor_; }
  /// Adds `share` of `loss_sum`, a tensor of one element.
  void add(const at::Tensor& loss_sum, double share);
  bool has_any() const { return sum_.defined(); }
  /// The sum of all added losses; unset if there are none. Waits for the device.
  std::optional<double> sum() const;

 private:
  double gradient_factor_;
  at::Tensor sum_;  // double, on the layers' device; undefined: nothing was added
};

namespace nn {

/// Returns `x`. Its backward also starts the backward of `loss_sum`, as if `loss_sum` had been
/// added to the main loss.
///
/// `loss_sum` (one element; float32 or wider): the sum over the microbatch's tokens on this rank,
/// times its coefficient. Like the main loss it is divided by the valid tokens of the global step.
/// Ranks of data and context parallelism hold different tokens, so their sums add up. Where
/// tensor-parallel ranks hold the same tokens (Batch::copies), the layer passes the whole sum on
/// each rank, and each rank counts its share.
///
/// A layer calls this in every step or in none: the run decides in its first step whether it logs
/// loss_metrics/global_avg_auxiliary_loss, the sum over all ranks and layers divided by the valid
/// tokens. Without gradients or without a step, the function only returns `x`.
TITAN_API at::Tensor with_auxiliary_loss(const at::Tensor& x, const at::Tensor& loss_sum,
                                         const Batch& batch);

}  // namespace nn
}  // namespace titan
