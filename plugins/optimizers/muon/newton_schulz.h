// Newton-Schulz iteration: approximates the nearest matrix with orthonormal rows or columns. Used
// by Muon.
#pragma once

#include <array>
#include <cstdint>

#include <ATen/core/Tensor.h>

namespace titan::muon {

struct NewtonSchulz {
  /// a, b, c: of the quintic polynomial a x + b x³ + c x⁵ that each step applies to the singular
  /// values; chosen for its slope at zero, it brings them near 1 without converging there.
  std::array<double, 3> coefficients = {3.4445, -4.7750, 2.0315};
  int64_t num_steps = 5;
  double eps = 1e-7;  ///< least divisor: a smaller norm counts as this
};

/// `matrix` (rows, columns), contiguous, becomes U S' Vᵀ of its singular value decomposition, S'
/// within about 0.5 ... 1.5; in its own dtype. The operations of torch.optim.Muon in its order.
/// Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024.
at::Tensor orthogonalize(const at::Tensor& matrix, const NewtonSchulz& settings);

struct MatrixShape {
  int64_t rows, columns;
};

/// Uninitialized memory for the orthogonalized `updates` (n, rows, columns), matrices or slices of
/// matrices of shape `whole`. It has the strides of orthogonalize()'s result, so that adding it to
/// a weight rounds alike.
at::Tensor empty_directions(const at::Tensor& updates, const MatrixShape& whole);

/// Orthogonalizes each matrix of `stack` (n, rows, columns), contiguous. On the CPU one after the
/// other, so that the bits of a matrix do not depend on n; elsewhere in batched products.
at::Tensor orthogonalize_each(const at::Tensor& stack, const NewtonSchulz& settings);
/// The same in batched products on any device.
at::Tensor orthogonalize_at_once(const at::Tensor& stack, const NewtonSchulz& settings);

}  // namespace titan::muon
