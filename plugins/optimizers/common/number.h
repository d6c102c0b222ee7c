// A number as an operand of its own. Used by the optimizers.
#pragma once

#include <ATen/ScalarOps.h>

namespace titan::optimizers {

/// For tensors in bfloat16: x.mul_(number(0.999)) multiplies by 0.999, where x.mul_(0.999) rounds
/// the number to bfloat16 first, which makes 1 of it. Nothing else differs.
inline at::Tensor number(double value) {
  return at::native::wrapped_scalar_tensor(value);
}

}  // namespace titan::optimizers
