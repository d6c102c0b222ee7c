// Decides which steps are recorded, with the same cycle as torchtitan v0.2.2. No torch.
#pragma once

#include <cstdint>

namespace titan::profiling {

/// A cycle of `freq` steps: waiting, then `warmup`, then `active` recorded ones.
class TraceSchedule {
 public:
  enum class Action { wait, warm_up, record };

  /// `first_step` of this session has phase 0, regardless of its number; a later step s has phase
  /// (s - 1) mod freq. `warmup` + `active` <= `freq`.
  TraceSchedule(int64_t freq, int64_t warmup, int64_t active, int64_t first_step)
      : freq_(freq), warmup_(warmup), active_(active), first_step_(first_step) {}

  Action action(int64_t step) const {
    const int64_t phase = phase_of(step);
    if (phase >= freq_ - active_) return Action::record;
    return phase >= freq_ - active_ - warmup_ ? Action::warm_up : Action::wait;
  }
  /// Whether a recording ends with this step.
  bool is_last(int64_t step) const { return phase_of(step) == freq_ - 1; }

 private:
  int64_t phase_of(int64_t step) const { return step == first_step_ ? 0 : (step - 1) % freq_; }

  int64_t freq_, warmup_, active_, first_step_;
};

}  // namespace titan::profiling
