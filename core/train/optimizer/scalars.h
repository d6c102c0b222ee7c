// Numbers that live on a device.
#pragma once

#include <ATen/core/Tensor.h>

namespace titan::core {

/// The value of a tensor of one element; waits for its device. On the meta device there is none: 0.
inline double read_scalar(const at::Tensor& scalar) {
  return scalar.is_meta() ? 0 : scalar.item<double>();
}

}  // namespace titan::core
