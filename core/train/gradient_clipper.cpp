#include "core/train/gradient_clipper.h"

#include "core/train/gradient_norm.h"

namespace titan::core {

void GradientClipper::reduced(Step& step) {
  step.norm = clip_gradients(part_, mesh_, device_, max_norm_, step.batches.gradient_scale).value;
}

}  // namespace titan::core
