// Sums the losses of a step's microbatches. Used by executors.
#pragma once

#include <ATen/core/Tensor.h>

#include <titan/dist/group.h>
#include <titan/export.h>
#include <titan/step.h>

namespace titan {

/// Adds losses in fp64: CPU losses on the host, others on their device, so that the host continues
/// with the next microbatch without waiting. Both give the same bits. Losses on the meta device
/// have no values: 0.
class TITAN_API LossSum {
 public:
  /// Scalar, any floating type.
  void add(const at::Tensor& loss);
  void add(const LossSum& other);
  /// Replaces this sum by the sum over the ranks of `group`; a rank may have added nothing.
  /// `device`: of the losses and of the group's communication.
  void sum_over(const dist::Group& group, c10::Device device);
  /// `keep_on_device`: StepBatches::keep_loss_on_device, the loss stays on the device. Otherwise
  /// waits for the device.
  StepLoss loss(bool keep_on_device) const;
  /// One fp64 on the device; undefined for CPU losses and if nothing was added.
  const at::Tensor& device_sum() const { return device_sum_; }

 private:
  double host_sum_ = 0;
  at::Tensor device_sum_;
};

}  // namespace titan
