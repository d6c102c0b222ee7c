// The progress of a run. Used by the trainer; saved in checkpoints.
#pragma once

#include <cstdint>

namespace titan::core {

/// Counters and the loss scale of a run.
struct TrainState {
  int64_t step = 0;
  int64_t tokens_seen = 0;     ///< of all ranks, padding left out
  int64_t tokens_learned = 0;  ///< those that had a label
  int64_t lr_step = 0;    ///< of the learning rate schedule; differs from `step` if a resume left
                          ///< out one
  double loss_scale = 0;  ///< of float16 gradients; 0: unused
  int64_t loss_scale_steps = 0;  ///< steps since it changed or gradients overflowed
};

}  // namespace titan::core
