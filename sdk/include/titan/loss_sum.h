// The loss of a step out of those of its microbatches. Used by whatever runs them.
#pragma once

#include <ATen/core/Tensor.h>

#include <titan/dist/group.h>
#include <titan/export.h>
#include <titan/step.h>

namespace titan {

/// Losses added up in fp64: of a CPU at once, of other devices there, so that the host goes on to
/// the next microbatch meanwhile. Same bits. Of the meta device there are no numbers: 0.
class TITAN_API LossSum {
 public:
  /// Scalar, any floating type.
  void add(const at::Tensor& loss);
  void add(const LossSum& other);
  /// Becomes the sum over the ranks of `group`, which may have added nothing. `device`: where
  /// losses and the group's communication are.
  void sum_over(const dist::Group& group, c10::Device device);
  /// `stays`: StepBatches::loss_stays. Waits for the device unless the loss is left there.
  StepLoss loss(bool stays) const;
  /// One fp64 on the device; undefined of a CPU and where nothing was added.
  const at::Tensor& there() const { return there_; }

 private:
  double here_ = 0;
  at::Tensor there_;
};

}  // namespace titan
