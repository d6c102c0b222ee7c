// The inner loops for x86 with AVX2 and FMA; ops.cmake compiles this file, and only this one, with
// those instructions.
#include "kernels.h"

namespace titan::ops {

#if defined(__AVX2__) && defined(__FMA__)

#define TITAN_VECTOR_BYTES 32
#include "kernels.inc"

const Kernels* avx2_build() {
  return &kKernels;
}

#else

const Kernels* avx2_build() {
  return nullptr;
}

#endif

}  // namespace titan::ops
