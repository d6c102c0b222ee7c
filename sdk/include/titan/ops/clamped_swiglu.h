// The gate of gpt-oss's experts. Used by nn::GroupedExperts.
#pragma once

#include <ATen/core/Tensor.h>
#include <titan/export.h>

namespace titan::ops {

struct ClampedSwigluOptions {
  double limit = 7;
  double alpha = 1.702;
};

/// g · sigmoid(alpha · g) · (u + 1), where g is gate, at most `limit`, and u is up within ± limit.
/// OpenAI, 2025.
///
/// gate and up: same shape and dtype; computed in fp32 (double for double), result in their dtype.
/// Differentiable once in both: what is cut off has no gradient, what lies at the limit has one, as
/// with the clamp of LibTorch 2.11; that of 2.15 gives it none. Only gate and up are kept. On the
/// meta device too. Throws config Error when shapes or dtypes differ.
TITAN_API at::Tensor clamped_swiglu(const at::Tensor& gate, const at::Tensor& up,
                                    const ClampedSwigluOptions& options = {});

}  // namespace titan::ops
