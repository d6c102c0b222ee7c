// The sum of what the ranks sent in a reduce-scatter.
#pragma once

#include <ATen/core/Tensor.h>

namespace titan::cpu {

/// Sums the chunks (size, n) in rank order into `out` of n elements; 16-bit types in fp32, rounded
/// once.
void sum_chunks(const at::Tensor& out, const at::Tensor& chunks);

}  // namespace titan::cpu
