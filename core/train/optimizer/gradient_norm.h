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
/// Squares are summed over rows of 1,024 elements in the gradients' dtype and from there on in
/// double, over each rank's shards and then over all ranks. An element that several ranks hold is
/// counted by the first of them. `device`: where the mesh communicates. The incoming gradients are
/// `gradient_scale` times those of the loss. The norm is that of the unscaled gradients, which this
/// leaves in place.
GradientNorm clip_gradients(ModelPart& part, const dist::Mesh& mesh, c10::Device device,
                            double max_norm, double gradient_scale = 1);

/// The result of clip_gradients, without changing the gradients.
struct Clipping {
  double norm = 0;
  double coefficient = 1;  ///< factor for each gradient
};
Clipping measure_clipping(ModelPart& part, const dist::Mesh& mesh, c10::Device device,
                          double max_norm, double gradient_scale = 1);

/// The same bits with a gradient scale of 1, but the host does not wait: the norm stays on the
/// device, one element in fp64.
at::Tensor clip_gradients_unseen(ModelPart& part, const dist::Mesh& mesh, c10::Device device,
                                 double max_norm);

/// The result of clip_gradients_unseen, without changing the gradients: one element in fp64 each. A
/// max_norm of 0 has no coefficient.
struct UnseenClipping {
  at::Tensor norm, coefficient;
};
UnseenClipping measure_clipping_unseen(ModelPart& part, const dist::Mesh& mesh, c10::Device device,
                                       double max_norm);

}  // namespace titan::core
