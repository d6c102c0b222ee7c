// Optional interface of optimizers that multiply gradients while they read them. Used by the
// trainer, which then clips gradients without a pass over memory of its own.
#pragma once

#include <ATen/core/Tensor.h>
#include <titan/export.h>

TITAN_OPTIONAL_HEADER(scales_gradients);

namespace titan {

/// Optional: an Optimizer derives from this. The trainer uses it in runs where nothing but the
/// optimizer reads gradients after clipping.
class TITAN_API ScalesGradients {
 public:
  virtual ~ScalesGradients();
  /// [trainer thread] Whether step_scaled saves a pass on the devices that hold the weights. False:
  /// the trainer multiplies the gradients itself.
  virtual bool scales_gradients() const = 0;
  /// [as Optimizer::step] The same results, to the bit, as if each gradient were multiplied by
  /// `scale` before step(lr_factor): in float32, or float64 for gradients in float64, and rounded
  /// to the gradient's type. `scale`: one element in float64, on the device of the weights; the
  /// host does not wait for it. The values of the gradients are undefined afterwards.
  virtual void step_scaled(double lr_factor, const at::Tensor& scale) = 0;
};

}  // namespace titan
