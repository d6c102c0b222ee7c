// The inner loops for any CPU of the architecture, and the choice at run time. Used by
// src/ops/cpu.
#include "kernels.h"

namespace titan::ops {

#define TITAN_VECTOR_BYTES 16
#include "kernels.inc"

const Kernels& baseline_kernels() {
  return kKernels;
}

const Kernels* avx2_kernels() {
#if defined(__x86_64__)
  const bool supported = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return supported ? avx2_build() : nullptr;
#else
  return nullptr;
#endif
}

const Kernels& kernels() {
  static const Kernels& chosen = avx2_kernels() != nullptr ? *avx2_kernels() : baseline_kernels();
  return chosen;
}

}  // namespace titan::ops
