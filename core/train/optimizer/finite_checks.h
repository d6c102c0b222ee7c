// Ends a run whose loss or gradients are NaN or infinite, before they reach the weights. Members of
// a step.
#pragma once

#include <titan/step.h>

namespace titan::core {

/// data Error in `judge`, on the rank that has the loss. DeviceScalars checks losses that stay on
/// the device.
class FiniteLoss final : public StepMember {
 public:
  /// `are_weights_unchanged`: whether weights are unchanged in `judge`; false if the optimizer
  /// works inside the backward.
  explicit FiniteLoss(bool are_weights_unchanged) : are_weights_unchanged_(are_weights_unchanged) {}
  Judgement judge(const Step& step) override;

 private:
  bool are_weights_unchanged_;
};

/// data Error in `judge`, on all ranks. Acts after the members that skip steps because of their
/// norm.
class FiniteNorm final : public StepMember {
 public:
  Judgement judge(const Step& step) override;
};

}  // namespace titan::core
