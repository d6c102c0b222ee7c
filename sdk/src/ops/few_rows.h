// How ops::linear computes few rows. Used by linear.cpp.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

namespace titan::ops {

/// x (..., in) · weight (out, in)ᵀ -> (..., out), without a graph; nothing where no FewRowsScope
/// lives, there are more rows, or they are not of a kind that it takes.
std::optional<at::Tensor> few_rows(const at::Tensor& x, const at::Tensor& weight);

}  // namespace titan::ops
