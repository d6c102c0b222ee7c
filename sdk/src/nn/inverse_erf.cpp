#include "inverse_erf.h"

// Compiled also for wider vectors, chosen when the library is loaded; sanitizers do not support it.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TITAN_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TITAN_VECTOR_CLONES
#endif

#pragma GCC push_options
#pragma GCC optimize("O3", "no-math-errno")

namespace titan::nn {
namespace {

TITAN_VECTOR_CLONES void arguments(const double* x, double* a, int count) {
  for (int i = 0; i < count; ++i) a[i] = (1.0 - x[i]) * (1.0 + x[i]);
}

TITAN_VECTOR_CLONES void polynomials(const double* x, const double* w, double* y, int count) {
  for (int i = 0; i < count; ++i) {
    const double u = w[i] - 2.5, v = std::sqrt(w[i]) - 3.0;
    double central = kErfinvCentral[0], tail = kErfinvTail[0];
#pragma GCC unroll 8
    for (int power = 1; power < 9; ++power) {
      central = kErfinvCentral[power] + central * u;
      tail = kErfinvTail[power] + tail * v;
    }
    y[i] = (w[i] < kErfinvTailBegin ? central : tail) * x[i];
  }
}

}  // namespace

void inverse_erf(const double* x, double* y, int count) {
  double w[kErfinvBlock];
  arguments(x, w, count);
  bool is_beyond_fit = false;
  for (int i = 0; i < count; ++i) {
    w[i] = -std::log(w[i]);
    is_beyond_fit |= w[i] > kErfinvFitEnd;
  }
  polynomials(x, w, y, count);
  if (!is_beyond_fit) return;
  for (int i = 0; i < count; ++i)
    if (w[i] > kErfinvFitEnd) y[i] = inverse_erf(x[i]);
}

}  // namespace titan::nn

#pragma GCC pop_options
