// A scalar operand that is not rounded to the dtype of the tensor. Used by the optimizers.
#pragma once

#include <ATen/ScalarOps.h>

namespace titan::optimizers {

/// For tensors in bfloat16: x.mul_(number(0.999)) multiplies by 0.999, while x.mul_(0.999) first
/// rounds 0.999 to bfloat16, which gives 1. Nothing else differs.
inline at::Tensor number(double value) {
  return at::native::wrapped_scalar_tensor(value);
}

}  // namespace titan::optimizers
