// Reads numbers that are on a device. Used by the members of a step.
#pragma once

#include <ATen/core/Tensor.h>

namespace titan::core {

/// The value of a tensor of one element; waits for its device. 0 on the meta device.
inline double read_scalar(const at::Tensor& scalar) {
  return scalar.is_meta() ? 0 : scalar.item<double>();
}

}  // namespace titan::core
