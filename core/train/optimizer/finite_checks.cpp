#include "core/train/optimizer/finite_checks.h"

#include <cmath>

#include <titan/error.h>
#include <titan/program/quantity_text.h>

namespace titan::core {

Judgement FiniteLoss::judge(const Step& step) {
  if (step.batches.keep_loss_on_device) return {};
  TITAN_CHECK(std::isfinite(step.loss.normalized_sum), data, "the loss is ",
              without_nan_sign(step.loss.normalized_sum),
              are_weights_unchanged_ ? "; the weights were not changed by this step" : "",
              ". Lower optimizer.lr, lengthen lr_scheduler.warmup_steps or look at the data of "
              "this step; ",
              are_weights_unchanged_ ? "debug.find_nan" : "debug.detect_anomaly",
              " = true names the first layer that goes bad");
  return {};
}

Judgement FiniteNorm::judge(const Step& step) {
  TITAN_CHECK(!step.norm || std::isfinite(*step.norm), data, "the gradient norm is ",
              without_nan_sign(*step.norm), " at loss ", without_nan_sign(step.loss.normalized_sum),
              "; the weights were not changed by this step. Lower optimizer.lr or lengthen "
              "lr_scheduler.warmup_steps; debug.find_nan = true names the first layer that goes "
              "bad");
  return {};
}

}  // namespace titan::core
