// Matrix product with a weight, and the two halves of its backward. Used by nn::Linear and by
// split-backward schedules.
#pragma once

#include <ATen/core/Tensor.h>
#include <titan/export.h>

namespace titan::ops {

/// x (..., in), weight (out, in) of one dtype -> x · weightᵀ (..., out). Differentiable once in
/// both; saves x and weight (no copy; in-place changes are detected). Throws a config Error for
/// shapes that do not match.
TITAN_API at::Tensor linear(const at::Tensor& x, const at::Tensor& weight);

/// The gradient for x only, outside of autograd: grad_out (..., out), weight (out, in) -> (...,
/// in).
TITAN_API at::Tensor linear_grad_input(const at::Tensor& grad_out, const at::Tensor& weight);

/// The gradient for the weight only, outside of autograd: grad_out (..., out), x (..., in) -> (out,
/// in).
TITAN_API at::Tensor linear_grad_weight(const at::Tensor& grad_out, const at::Tensor& x);

}  // namespace titan::ops
