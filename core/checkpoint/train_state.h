// How far a run is. Used by the trainer; a checkpoint holds it.
#pragma once

#include <cstdint>

namespace titan::core {

/// What a run has reached.
struct TrainState {
  int64_t step = 0;
  int64_t tokens_seen = 0;     ///< of all ranks, padding left out
  int64_t tokens_learned = 0;  ///< those that were targets
  int64_t lr_step = 0;  ///< steps of the learning rate schedule; `step` unless one was left out at
                        ///< resume
  double loss_scale = 0;         ///< of float16 gradients; 0: there is none
  int64_t loss_scale_steps = 0;  ///< since it changed or gradients overflowed
};

}  // namespace titan::core
