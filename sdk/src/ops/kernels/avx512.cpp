// The inner loops for x86 with AVX-512; ops.cmake compiles this file, and only
// this one, with those instructions.
#include "kernels.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#include <immintrin.h>
#endif

namespace titan::ops {

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

#define TITAN_VECTOR_BYTES 64
#include "kernels.inc"

const Kernels* avx512_build() {
  return &kKernels;
}

#else

const Kernels* avx512_build() {
  return nullptr;
}

#endif

}  // namespace titan::ops
