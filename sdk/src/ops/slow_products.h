// Where ATen's products of 16-bit matrices are slow on the host.
#pragma once

#include <c10/core/ScalarType.h>

namespace titan::ops {

/// Whether ATen multiplies matrices of `type` on this CPU by a loop over elements, some tens of
/// times slower than fp32: on x86 it has oneDNN for bf16 from AVX-512 on, for fp16 where the CPU
/// itself multiplies it.
bool are_products_slow(at::ScalarType type);

}  // namespace titan::ops
