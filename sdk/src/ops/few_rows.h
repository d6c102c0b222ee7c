// The CPU kernel of ops::linear for few rows. Used by linear.cpp.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

namespace titan::ops {

/// x (..., in) · weight (out, in)ᵀ -> (..., out), without a graph; unset without a FewRowsScope,
/// with too many rows or with an unsupported dtype or layout.
std::optional<at::Tensor> few_rows(const at::Tensor& x, const at::Tensor& weight);

}  // namespace titan::ops
