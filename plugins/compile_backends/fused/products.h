// Matrix products of activations with any number of leading dimensions. Used by the fused layers.
#pragma once

#include <ATen/core/Tensor.h>
#include <titan/recompute.h>

namespace titan::fused {

/// (..., n) as (rows, n); reshape's -1 cannot infer the rows of an empty batch.
inline at::Tensor as_matrix(const at::Tensor& x) {
  if (x.dim() == 2) return x;
  return x.reshape({c10::multiply_integers(x.sizes().slice(0, x.dim() - 1)), x.size(-1)});
}

/// `matrix` (rows, m) as (..., m), with the leading sizes of x.
inline at::Tensor with_rows_of(const at::Tensor& x, const at::Tensor& matrix) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = matrix.size(1);
  return matrix.view(shape);
}

/// x (rows, in) · weight (out, in)ᵀ, for a RecomputeScope.
inline Operation product_of(const at::Tensor& x, int64_t out) {
  return {.kind = Operation::Kind::matmul,
          .flops = 2.0 * static_cast<double>(x.numel()) * static_cast<double>(out),
          .shape = {x.size(-1), out}};
}

}  // namespace titan::fused
