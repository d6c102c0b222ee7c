// Ends a run whose loss or gradients are no numbers, before they reach the weights. Members of a
// step.
#pragma once

#include <titan/step.h>

namespace titan::core {

/// data Error in `judge`, on the rank whose loss it is. Losses that stay on the device are judged
/// by whoever holds them.
class FiniteLoss final : public StepMember {
 public:
  /// `are_weights_unchanged`: when a step is judged, which is not so where the optimizer works
  /// inside the backward.
  explicit FiniteLoss(bool are_weights_unchanged) : are_weights_unchanged_(are_weights_unchanged) {}
  Judgement judge(const Step& step) override;

 private:
  bool are_weights_unchanged_;
};

/// data Error in `judge`, on all ranks. After whoever leaves steps out because of their norm.
class FiniteNorm final : public StepMember {
 public:
  Judgement judge(const Step& step) override;
};

}  // namespace titan::core
