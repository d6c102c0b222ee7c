#include "core/train/gradient_clipper.h"

#include "core/train/gradient_norm.h"

namespace titan::core {

void GradientClipper::reduced(Step& step) {
  if (held_ && held_->is_holding()) {
    held_->set_norm(clip_gradients_unseen(part_, mesh_, device_, max_norm_));
    return;
  }
  step.norm = clip_gradients(part_, mesh_, device_, max_norm_, step.batches.gradient_scale).value;
}

}  // namespace titan::core
