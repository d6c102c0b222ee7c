// The nearest matrix with orthonormal rows or columns, roughly: the heart of Muon.
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
  double eps = 1e-7;  ///< the least norm that is divided by
};

/// `matrix` (rows, columns), contiguous, becomes U S' Vᵀ of its singular value decomposition, S'
/// within about 0.5 ... 1.5; in its own dtype. The operations of torch.optim.Muon in its order.
/// Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024.
at::Tensor orthogonalize(const at::Tensor& matrix, const NewtonSchulz& settings);

struct MatrixShape {
  int64_t rows, columns;
};

/// Memory for what becomes of `updates` (n, rows, columns), matrices or slices of matrices of shape
/// `whole`: laid out as orthogonalize() gives one, so that adding it to a weight rounds alike.
at::Tensor empty_directions(const at::Tensor& updates, const MatrixShape& whole);

/// Each matrix of `stack` (n, rows, columns), contiguous, by itself. On the CPU one after the
/// other, so that its bits do not depend on how many there are; elsewhere in batched products.
at::Tensor orthogonalize_each(const at::Tensor& stack, const NewtonSchulz& settings);
/// In batched products on any device.
at::Tensor orthogonalize_at_once(const at::Tensor& stack, const NewtonSchulz& settings);

}  // namespace titan::muon
