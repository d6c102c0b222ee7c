#include "core/train/optimizer/gradient_clipper.h"

#include <utility>

#include <ATen/ops/full.h>

#include "core/train/optimizer/gradient_norm.h"

namespace titan::core {

void GradientClipper::reduced(Step& step) {
  if (update_ && update_->scales_gradients()) return measure_for_update(step);
  if (held_ && held_->is_holding()) {
    held_->set_norm(clip_gradients_unseen(part_, mesh_, device_, max_norm_));
    return;
  }
  step.norm = clip_gradients(part_, mesh_, device_, max_norm_, step.batches.gradient_scale).value;
}

void GradientClipper::measure_for_update(Step& step) {
  if (held_ && held_->is_holding()) {
    UnseenClipping clipping = measure_clipping_unseen(part_, mesh_, device_, max_norm_);
    held_->set_norm(std::move(clipping.norm));
    update_->set_scale(std::move(clipping.coefficient));
    return;
  }
  const Clipping clipping =
      measure_clipping(part_, mesh_, device_, max_norm_, step.batches.gradient_scale);
  step.norm = clipping.norm;
  if (clipping.coefficient != 1)
    update_->set_scale(
        at::full({}, clipping.coefficient, at::TensorOptions().dtype(at::kDouble).device(device_)));
}

}  // namespace titan::core
