// Looks up the rows of a table by token. Used by nn::Embedding.
#pragma once

#include <ATen/core/Tensor.h>
#include <titan/export.h>

namespace titan::ops {

/// weight (V, dim), tokens (...) int64 in 0 ... V-1 -> (..., dim) in the weight's dtype,
/// contiguous.
///
/// Differentiable once in weight, with a dense gradient: each row sums its tokens in order, in fp32
/// or double, rounded once, with any number of threads. Saves only the tokens. Throws a config
/// Error for shapes that do not match, a data Error for a token outside the table.
TITAN_API at::Tensor embedding(const at::Tensor& weight, const at::Tensor& tokens);

}  // namespace titan::ops
