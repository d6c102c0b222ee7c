// The arithmetic of Adam and AdamW on lists of tensors. Used by AdamUpdate.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace titan::optimizers {

enum class Implementation { fused, foreach, for_loop };

/// Whether the decay acts on the weights themselves (AdamW) or is added to the gradient (Adam).
enum class Decay { decoupled, in_gradient };

struct AdamFactors {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
};

/// One entry per parameter; the four tensors of an entry have one shape and one dtype. `steps` are
/// float32 numbers that already include this step.
struct AdamLists {
  std::vector<at::Tensor> parameters, gradients, exp_avgs, exp_avg_sqs, steps;
  std::vector<double> counts;  ///< values of `steps`, for implementations that use them on the host
};

/// With g the gradient, t the step: m <- m + (1-b1)(g - m), v <- b2 v + (1-b2) g²,
/// p <- p - lr / (1-b1^t) * m / (sqrt(v) / sqrt(1-b2^t) + eps).
/// Kingma and Ba, 2015; Loshchilov and Hutter, 2019.
/// These are the operations of torch.optim in the same order, so bfloat16 tensors round as there:
/// the fused kernel computes in float32 and rounds each of p, m and v once a step; the others round
/// after every operation.
///
/// On the meta device it makes the same allocations and computes nothing.
void update_adam(const AdamLists& lists, const AdamFactors& factors, Decay decay,
                 Implementation implementation, double lr);

}  // namespace titan::optimizers
