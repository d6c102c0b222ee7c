// The global gradient norm and clipping by it. Pascanu et al., 2013.
#pragma once

#include <ATen/core/Tensor.h>
#include <titan/dist/mesh.h>
#include <titan/model.h>

namespace titan::core {

/// L2 norm over all parameters' gradients before clipping.
struct GradientNorm {
  double value = 0;
};

/// Scales every gradient by min(1, max_norm / (norm + 1e-6)) in place; a max_norm of 0 leaves them.
/// The sum of squares is taken over rows of 1,024 elements in the gradients' type and from there on
/// in double, over each rank's shards and then over all ranks; an element that several ranks hold
/// is counted by the first of them. `device`: where the mesh communicates. The gradients are
/// `gradient_scale` times those of the loss; the norm is of the latter, and that is what is left.
GradientNorm clip_gradients(ModelPart& part, const dist::Mesh& mesh, c10::Device device,
                            double max_norm, double gradient_scale = 1);

/// What clip_gradients would do, without a change of the gradients.
struct Clipping {
  double norm = 0;
  double coefficient = 1;  ///< that each gradient is to be multiplied by
};
Clipping measure_clipping(ModelPart& part, const dist::Mesh& mesh, c10::Device device,
                          double max_norm, double gradient_scale = 1);

/// The same with a gradient scale of 1, to the bit, but the host waits for nothing: the norm stays
/// on the device, one element in fp64.
at::Tensor clip_gradients_unseen(ModelPart& part, const dist::Mesh& mesh, c10::Device device,
                                 double max_norm);

/// What clip_gradients_unseen would do, without a change of the gradients: one element in fp64
/// each. A max_norm of 0 has no coefficient.
struct UnseenClipping {
  at::Tensor norm, coefficient;
};
UnseenClipping measure_clipping_unseen(ModelPart& part, const dist::Mesh& mesh, c10::Device device,
                                       double max_norm);

}  // namespace titan::core
