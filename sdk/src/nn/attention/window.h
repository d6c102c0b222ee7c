// Attention to the last tokens of one run, by causal attention alone. Used by attention_tiles.cpp.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <titan/ops/attention.h>

namespace titan::nn {

/// Query i sees keys max(0, i - window + 1) ... i; n queries and as many keys.
///
/// The run is cut into pieces of `window` tokens. A query sees what is before it in its own piece,
/// and in the piece before that what comes after its own offset: read backwards, that is what is
/// before it. Both are causal attention, of all pieces at once, so whatever the devices have for it
/// is used and no mask is made.
ops::AttentionResult window_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                    int64_t window, double scale);
/// As ops::attention_backward.
ops::AttentionGradients window_backward(const at::Tensor& grad_out, const at::Tensor& q,
                                        const at::Tensor& k, const at::Tensor& v,
                                        const ops::AttentionResult& whole, int64_t window,
                                        double scale);

}  // namespace titan::nn
