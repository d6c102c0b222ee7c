// The activation of gpt-oss's experts. Used by nn::GroupedExperts.
#pragma once

#include <ATen/core/Tensor.h>
#include <titan/export.h>

namespace titan::ops {

struct ClampedSwigluOptions {
  double limit = 7;
  double alpha = 1.702;
};

/// g · sigmoid(alpha · g) · (u + 1), where g = min(gate, limit) and u = clamp(up, -limit, limit).
/// OpenAI, 2025.
///
/// gate and up: same shape and dtype; computed in fp32 (double for double), result in their dtype.
/// Differentiable once in both. Clamped values get no gradient; values equal to the limit get one,
/// as with the clamp of LibTorch 2.11 (2.15 gives them none). Saves only gate and up. Also works on
/// the meta device. Throws a config Error if shapes or dtypes differ.
TITAN_API at::Tensor clamped_swiglu(const at::Tensor& gate, const at::Tensor& up,
                                    const ClampedSwigluOptions& options = {});

}  // namespace titan::ops
