// The dtype of sums over elements of `x`. Used by the attention of this folder.
#pragma once

#include <ATen/core/Tensor.h>

namespace titan::nn {

/// fp32, double for double.
inline at::ScalarType sum_type(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

}  // namespace titan::nn
