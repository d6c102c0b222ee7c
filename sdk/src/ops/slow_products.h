// Detects CPUs on which ATen's products of 16-bit matrices are slow. Used by the CPU kernels.
#pragma once

#include <c10/core/ScalarType.h>

namespace titan::ops {

/// Whether ATen multiplies matrices of `type` on this CPU by a loop over elements, some tens of
/// times slower than fp32. On x86, oneDNN is faster for bf16 from AVX-512 on, and for fp16 if the
/// CPU multiplies it natively.
bool are_products_slow(at::ScalarType type);

}  // namespace titan::ops
