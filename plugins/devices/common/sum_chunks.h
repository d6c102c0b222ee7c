// Adds up the chunks that the ranks sent in a reduce-scatter. Used by the CPU backends.
#pragma once

#include <ATen/core/Tensor.h>

namespace titan::cpu {

/// Sums the chunks (size, n) in rank order into `out` of n elements. 16-bit types are summed in
/// fp32 and rounded once.
void sum_chunks(const at::Tensor& out, const at::Tensor& chunks);

}  // namespace titan::cpu
