#include "newton_schulz.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>

namespace titan::muon {

at::Tensor orthogonalize(const at::Tensor& matrix, const NewtonSchulz& settings) {
  const auto [a, b, c] = settings.coefficients;
  const bool is_tall = matrix.size(0) > matrix.size(1);
  at::Tensor x = is_tall ? matrix.t() : matrix;  // the products with itself are the smaller ones
  x = x.div(at::linalg_vector_norm(x, 2).clamp_min(settings.eps));  // all singular values <= 1
  for (int64_t step = 0; step < settings.num_steps; ++step) {
    const at::Tensor gram = at::mm(x, x.t());
    const at::Tensor factor = at::addmm(gram, gram, gram, /*beta=*/b, /*alpha=*/c);
    x = at::addmm(x, factor, x, /*beta=*/a);
  }
  return is_tall ? x.t() : x;
}

}  // namespace titan::muon
