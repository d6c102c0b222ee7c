#include "core/train/loss/loss_scaler.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <titan/error.h>

namespace titan::core {

LossScaler::LossScaler(const LossScalingSection& section, bool is_active, bool is_first_rank,
                       TrainState& state)
    : section_(section), is_active_(is_active), is_first_rank_(is_first_rank), state_(state) {
  if (is_active_ && state_.loss_scale == 0) state_.loss_scale = section_.initial;
}

void LossScaler::begin(Step& step) {
  step.batches.gradient_scale = scale();
  if (is_active_) step.scalars.push_back({"loss_scale", scale()});
}

bool LossScaler::has_overflowed(const Step& step) const {
  return is_active_ && step.norm && !std::isfinite(*step.norm);
}

double LossScaler::shrunk() const {
  return std::max(section_.minimum, state_.loss_scale * section_.backoff_factor);
}

Judgement LossScaler::judge(const Step& step) {
  if (!has_overflowed(step)) return {};
  TITAN_CHECK(state_.loss_scale > section_.minimum, data,
              "the gradients overflow float16 even at a loss scale of ", state_.loss_scale,
              " (training.loss_scaling.minimum); the weights were not changed by this step. "
              "Compute in bfloat16 (training.mixed_precision_param), lower optimizer.lr or look "
              "at the data of this step");
  if (!is_first_rank_) return {.verdict = Verdict::skip, .reason = ""};
  return {.verdict = Verdict::skip,
          .reason = "gradients overflowed float16 in step " + std::to_string(step.number) +
                    ": the weights are unchanged; the loss scale is now " +
                    std::to_string(shrunk())};
}

void LossScaler::commit(const Step&) {
  if (!is_active_ || ++state_.loss_scale_steps < section_.growth_interval) return;
  const double grown = state_.loss_scale * section_.growth_factor;
  if (std::isfinite(static_cast<float>(grown))) state_.loss_scale = grown;
  state_.loss_scale_steps = 0;
}

void LossScaler::skip(const Step& step) {
  if (!has_overflowed(step)) return;
  state_.loss_scale = shrunk();
  state_.loss_scale_steps = 0;
}

}  // namespace titan::core
