// AdamW of one weight that scales the gradient while reading it, on devices with such an operation.
// Used by optimizers that clip gradients inside their update.
#pragma once

#include <titan/ops/adamw_step.h>

TITAN_OPTIONAL_HEADER(scaled_adamw_step);

namespace titan::ops {

/// Whether the device of `weight` has the operation. The CPU does not.
TITAN_API bool has_scaled_adamw_step(const at::Tensor& weight);

/// As adamw_step with the gradient times `gradient_scale`, a float32 scalar on the same device. The
/// product is rounded to the gradient's dtype; the gradient itself does not change.
TITAN_API bool scaled_adamw_step(const at::Tensor& weight, const at::Tensor& gradient,
                                 const at::Tensor& gradient_scale, const at::Tensor& exp_avg,
                                 const at::Tensor& exp_avg_sq, const at::Tensor& step,
                                 const AdamWNumbers& numbers,
                                 const std::optional<StochasticRounding>& rounding);

}  // namespace titan::ops
