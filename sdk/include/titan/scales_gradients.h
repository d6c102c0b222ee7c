// Optional interface of optimizers that scale gradients while reading them. With one, the trainer
// clips gradients without a separate pass over memory.
#pragma once

#include <ATen/core/Tensor.h>
#include <titan/export.h>

TITAN_OPTIONAL_HEADER(scales_gradients);

namespace titan {

/// Optional: an Optimizer derives from this. The trainer uses it in runs where only the optimizer
/// reads gradients after clipping.
class TITAN_API ScalesGradients {
 public:
  virtual ~ScalesGradients();
  /// [trainer thread] Whether step_scaled saves a memory pass on the devices that hold the weights.
  /// False: the trainer scales the gradients itself.
  virtual bool scales_gradients() const = 0;
  /// [as Optimizer::step] Bitwise the same results as multiplying each gradient by `scale` before
  /// step(lr_factor): in float32 (float64 for float64 gradients), rounded to the gradient's dtype.
  /// `scale`: one float64 element on the device of the weights, not synchronized with the host. The
  /// gradients' values are undefined afterwards.
  virtual void step_scaled(double lr_factor, const at::Tensor& scale) = 0;
};

}  // namespace titan
