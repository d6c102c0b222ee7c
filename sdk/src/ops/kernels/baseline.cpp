// The inner loops for any CPU of the architecture, and the choice of the build at run time. Used by
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

bool multiplies_bf16_fast() {
  return __builtin_cpu_is("amd");
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
bool multiplies_bf16_fast() {
  return false;
}

#endif

const Kernels& kernels() {
  static const Kernels& chosen = []() -> const Kernels& {
    const Kernels* of_bf16 = multiplies_bf16_fast() ? avx512_bf16_kernels() : nullptr;
    for (const Kernels* build : {of_bf16, avx512_kernels(), avx2_kernels()})
      if (build != nullptr) return *build;
    return baseline_kernels();
  }();
  return chosen;
}

}  // namespace titan::ops
