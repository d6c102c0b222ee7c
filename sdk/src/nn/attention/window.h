// Windowed attention within one run, built from causal attention. Used by attention_tiles.cpp.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <titan/ops/attention.h>

namespace titan::nn {

/// Query i sees keys max(0, i - window + 1) ... i; n queries and as many keys.
///
/// The run is cut into pieces of `window` tokens. A query sees the earlier tokens of its own piece,
/// and of the piece before that the tokens after its own offset, which are the earlier ones when
/// the piece is reversed. Both are causal attention, over all pieces at once, so the devices' own
/// kernels are used and no mask is made.
ops::AttentionResult window_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                    int64_t window, double scale);
/// As ops::attention_backward.
ops::AttentionGradients window_backward(const at::Tensor& grad_out, const at::Tensor& q,
                                        const at::Tensor& k, const at::Tensor& v,
                                        const ops::AttentionResult& whole, int64_t window,
                                        double scale);

}  // namespace titan::nn
