// Ends a run whose loss or gradients are no numbers, before they reach the weights. Members of a
// step.
#pragma once

#include <titan/step.h>

#include "core/train/held_numbers.h"

namespace titan::core {

/// data Error in `judge`, on the rank whose loss it is.
class FiniteLoss final : public StepMember {
 public:
  /// `are_weights_unchanged`: when a step is judged, which is not so where the optimizer works
  /// inside the backward.
  /// `held`: checks the losses of steps that it holds by itself; null: there are none.
  explicit FiniteLoss(bool are_weights_unchanged, const HeldNumbers* held = nullptr)
      : are_weights_unchanged_(are_weights_unchanged), held_(held) {}
  Judgement judge(const Step& step) override;

 private:
  bool are_weights_unchanged_;
  const HeldNumbers* held_;
};

/// data Error in `judge`, on all ranks. After whoever leaves steps out because of their norm.
class FiniteNorm final : public StepMember {
 public:
  Judgement judge(const Step& step) override;
};

}  // namespace titan::core
