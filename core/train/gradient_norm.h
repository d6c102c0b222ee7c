// The global gradient norm and clipping by it. Pascanu et al., 2013.
#pragma once

#include <titan/dist/mesh.h>
#include <titan/model.h>

namespace titan::core {

/// L2 norm over all parameters' gradients before clipping.
struct GradientNorm {
  double value = 0;
};

/// Scales every gradient by min(1, max_norm / (norm + 1e-6)) in place. The sum of squares is taken
/// in fp32 over each rank's shards and summed over the axes along which shards differ ("fsdp",
/// "pp").
GradientNorm clip_gradients(ModelPart& part, const dist::Mesh& mesh, double max_norm);

}  // namespace titan::core
