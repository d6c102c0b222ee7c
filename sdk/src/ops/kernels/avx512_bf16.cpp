// The inner loops for x86 with AVX-512 and its products of bf16; ops.cmake compiles this file, and
// only this one, with those instructions.
#include "kernels.h"

#if defined(__AVX512F__) && defined(__AVX512BF16__)
#include <immintrin.h>
#endif

namespace titan::ops {

#if defined(__AVX512F__) && defined(__AVX512BF16__)

#define TITAN_VECTOR_BYTES 64
#define TITAN_BF16_WORDS 1
#include "kernels.inc"

const Kernels* avx512_bf16_build() {
  return &kKernels;
}

#else

const Kernels* avx512_bf16_build() {
  return nullptr;
}

#endif

}  // namespace titan::ops
