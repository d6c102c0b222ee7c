#include "newton_schulz.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>

namespace titan::muon {

at::Tensor orthogonalize(const at::Tensor& matrix, const NewtonSchulz& settings) {
  const auto [a, b, c] = settings.coefficients;
  const bool is_tall = matrix.size(0) > matrix.size(1);
  at::Tensor x = is_tall ? matrix.t() : matrix;  // makes x xᵀ the smaller product
  x = x.div(at::linalg_vector_norm(x, 2).clamp_min(settings.eps));  // all singular values <= 1
  for (int64_t step = 0; step < settings.num_steps; ++step) {
    const at::Tensor gram = at::mm(x, x.t());
    const at::Tensor factor = at::addmm(gram, gram, gram, /*beta=*/b, /*alpha=*/c);
    x = at::addmm(x, factor, x, /*beta=*/a);
  }
  return is_tall ? x.t() : x;
}

at::Tensor empty_directions(const at::Tensor& updates, const MatrixShape& whole) {
  if (whole.rows <= whole.columns) return at::empty(updates.sizes(), updates.options());
  return at::empty({updates.size(0), updates.size(2), updates.size(1)}, updates.options())
      .transpose(1, 2);
}

at::Tensor orthogonalize_each(const at::Tensor& stack, const NewtonSchulz& settings) {
  if (!stack.is_cpu()) return orthogonalize_at_once(stack, settings);
  const at::Tensor out = empty_directions(stack, {stack.size(1), stack.size(2)});
  for (int64_t i = 0; i < stack.size(0); ++i) out[i].copy_(orthogonalize(stack[i], settings));
  return out;
}

at::Tensor orthogonalize_at_once(const at::Tensor& stack, const NewtonSchulz& settings) {
  const auto [a, b, c] = settings.coefficients;
  const bool is_tall = stack.size(1) > stack.size(2);
  at::Tensor x = is_tall ? stack.transpose(1, 2) : stack;
  const at::Tensor norms = at::linalg_vector_norm(x, 2, {1, 2}, /*keepdim=*/true);
  x = x.div(norms.clamp_min(settings.eps));
  for (int64_t step = 0; step < settings.num_steps; ++step) {
    const at::Tensor gram = at::bmm(x, x.transpose(1, 2));
    const at::Tensor factor = at::baddbmm(gram, gram, gram, b, c);
    x = at::baddbmm(x, factor, x, a);
  }
  return is_tall ? x.transpose(1, 2) : x;
}

}  // namespace titan::muon
