// Keeps the gradients of a computation in float16 in its range: [training.loss_scaling].
// Micikevicius et al., 2018.
#pragma once

#include "core/checkpoint/checkpointer.h"
#include "core/config/job_sections.h"
#include "core/train/gradient_norm.h"

namespace titan::core {

/// Backward starts from `scale()` instead of 1. When some gradient overflowed the step is left out
/// and the scale shrinks; after `growth_interval` steps without an overflow it grows. Every rank
/// decides by the same norm. Inactive, it is always 1 and takes every step.
class LossScaler {
 public:
  /// `state`: holds the scale between steps and runs; outlives this. A scale of 0 there: none yet.
  /// `is_first_rank`: says when a step is left out.
  LossScaler(const LossScalingSection& section, bool is_active, bool is_first_rank,
             TrainState& state);

  double scale() const { return is_active_ ? state_.loss_scale : 1; }
  bool is_active() const { return is_active_; }

  /// Whether the step's gradients are to be used. Throws a data Error when they overflowed although
  /// the scale cannot shrink any more.
  bool takes(const GradientNorm& norm);

 private:
  LossScalingSection section_;
  bool is_active_;
  bool is_first_rank_;
  TrainState& state_;
};

}  // namespace titan::core
