// Keeps the gradients of a computation in float16 in its range: [training.loss_scaling].
// Micikevicius et al., 2018. A member of a step.
#pragma once

#include <titan/step.h>

#include "core/checkpoint/train_state.h"
#include "core/config/schema/job_sections.h"

namespace titan::core {

/// Backward starts from `scale()` instead of 1. When some gradient overflowed the step is skipped
/// and the scale shrinks; after `growth_interval` steps without an overflow it grows. Every rank
/// decides by the same norm. Inactive, it is always 1 and has no opinion.
class LossScaler final : public StepMember {
 public:
  /// `state`: holds the scale between steps and runs; outlives this. A scale of 0 there: none yet.
  /// `is_first_rank`: says when a step is left out.
  LossScaler(const LossScalingSection& section, bool is_active, bool is_first_rank,
             TrainState& state);

  double scale() const { return is_active_ ? state_.loss_scale : 1; }

  bool undoes_steps() const override { return is_active_; }
  void begin(Step& step) override;
  /// Throws a data Error when gradients overflowed although the scale cannot shrink any more.
  Judgement judge(const Step& step) override;
  void commit(const Step& step) override;
  /// Shrinks the scale if gradients overflowed, whoever had the step skipped.
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
