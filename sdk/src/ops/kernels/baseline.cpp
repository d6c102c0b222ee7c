// The inner loops for any CPU of the architecture, and the choice at run time. Used by
// src/ops/cpu.
#include "kernels.h"

#include <initializer_list>

namespace titan::ops {

#define TITAN_VECTOR_BYTES 16
#include "kernels.inc"

const Kernels& baseline_kernels() {
  return kKernels;
}

#if defined(__x86_64__)

const Kernels* avx2_kernels() {
  const bool supported = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return supported ? avx2_build() : nullptr;
}

const Kernels* avx512_kernels() {
  const bool supported = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                         __builtin_cpu_supports("fma");
  return supported ? avx512_build() : nullptr;
}

const Kernels* avx512_bf16_kernels() {
  const bool supported = avx512_kernels() != nullptr && __builtin_cpu_supports("avx512bf16");
  return supported ? avx512_bf16_build() : nullptr;
}

#else

const Kernels* avx2_kernels() {
  return nullptr;
}
const Kernels* avx512_kernels() {
  return nullptr;
}
const Kernels* avx512_bf16_kernels() {
  return nullptr;
}

#endif

const Kernels& kernels() {
  static const Kernels& chosen = []() -> const Kernels& {
    for (const Kernels* build : {avx512_bf16_kernels(), avx512_kernels(), avx2_kernels()})
      if (build != nullptr) return *build;
    return baseline_kernels();
  }();
  return chosen;
}

}  // namespace titan::ops
