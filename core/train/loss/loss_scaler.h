// Scales the loss so that float16 gradients stay in range: [training.loss_scaling]. Micikevicius et
// al., 2018. A member of a step.
#pragma once

#include <titan/step.h>

#include "core/checkpoint/train_state.h"
#include "core/config/schema/job_sections.h"

namespace titan::core {

/// Backward starts from `scale()` instead of 1. If a gradient overflowed, the step is skipped and
/// the scale shrinks; after `growth_interval` steps without an overflow it grows. Every rank
/// decides by the same norm. If inactive, the scale is always 1 and every verdict is commit.
class LossScaler final : public StepMember {
 public:
  /// `state` holds the scale between steps and runs; outlives this. A scale of 0 there means unset.
  /// `is_first_rank`: this rank logs skipped steps.
  LossScaler(const LossScalingSection& section, bool is_active, bool is_first_rank,
             TrainState& state);

  double scale() const { return is_active_ ? state_.loss_scale : 1; }

  bool undoes_steps() const override { return is_active_; }
  void begin(Step& step) override;
  /// Throws a data Error when gradients overflowed although the scale cannot shrink any more.
  Judgement judge(const Step& step) override;
  void commit(const Step& step) override;
  /// Shrinks the scale if gradients overflowed, even if another member had the step skipped.
  void skip(const Step& step) override;

 private:
  bool has_overflowed(const Step& step) const;
  double shrunk() const;

  LossScalingSection section_;
  bool is_active_;
  bool is_first_rank_;
  TrainState& state_;
};

}  // namespace titan::core
