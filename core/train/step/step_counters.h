// Counts a run's steps and tokens, and sets the learning rate from them. A member of a step.
#pragma once

#include <titan/lr_scheduler.h>
#include <titan/step.h>

#include "core/checkpoint/checkpointer.h"

namespace titan::core {

/// A step counts when it is committed or skipped. References outlive this.
class StepCounters final : public StepMember {
 public:
  StepCounters(TrainState& state, const LrScheduler& lr_scheduler)
      : state_(state), lr_scheduler_(lr_scheduler) {}

  void begin(Step& step) override { step.lr_factor = lr_scheduler_.factor(state_.lr_step + 1); }
  void commit(const Step& step) override { count(step); }
  void skip(const Step& step) override { count(step); }

 private:
  void count(const Step& step) {
    state_.step = step.number;
    ++state_.lr_step;
    state_.tokens_seen += step.batches.num_tokens;
    state_.tokens_learned += step.batches.num_valid_tokens;
  }

  TrainState& state_;
  const LrScheduler& lr_scheduler_;
};

}  // namespace titan::core
