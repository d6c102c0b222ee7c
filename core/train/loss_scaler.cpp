#include "core/train/loss_scaler.h"

#include <algorithm>
#include <cmath>

#include <titan/error.h>
#include <titan/log.h>

namespace titan::core {

LossScaler::LossScaler(const LossScalingSection& section, bool is_active, bool is_first_rank,
                       TrainState& state)
    : section_(section), is_active_(is_active), is_first_rank_(is_first_rank), state_(state) {
  if (is_active_ && state_.loss_scale == 0) state_.loss_scale = section_.initial;
}

bool LossScaler::takes(const GradientNorm& norm) {
  if (!is_active_) return true;
  if (!std::isfinite(norm.value)) {
    TITAN_CHECK(state_.loss_scale > section_.minimum, data,
                "the gradients overflow float16 even at a loss scale of ", state_.loss_scale,
                " (training.loss_scaling.minimum); the weights were not changed by this step. "
                "Compute in bfloat16 (training.mixed_precision_param), lower optimizer.lr or look "
                "at the data of this step");
    state_.loss_scale = std::max(section_.minimum, state_.loss_scale * section_.backoff_factor);
    state_.loss_scale_steps = 0;
    if (is_first_rank_)
      log::info("gradients overflowed float16 in step " + std::to_string(state_.step) +
                ": it leaves the weights as they are; the loss scale is now " +
                std::to_string(state_.loss_scale));
    return false;
  }
  if (++state_.loss_scale_steps >= section_.growth_interval) {
    const double grown = state_.loss_scale * section_.growth_factor;
    if (std::isfinite(static_cast<float>(grown))) state_.loss_scale = grown;
    state_.loss_scale_steps = 0;
  }
  return true;
}

}  // namespace titan::core
