// Attention to keys of which each query sees only those that are not too far away. Used by
// attention_tiles.cpp where a window ends within keys that others hold or that were computed
// earlier.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <titan/ops/attention.h>

namespace titan::nn {

/// Query i stands at query_place + i, key j at key_place + j, and sees it when that is less than
/// `window` places away. All keys come before all queries, or are their own tokens' last.
struct Distance {
  int64_t query_place = 0;
  int64_t key_place = 0;
  int64_t window = 0;
};

/// By matrices of scores in fp32 (double for double), some hundred queries at a time: at most
/// `window` queries and keys are at an edge. A query that sees nothing has a logsumexp of -inf and
/// an output of zero.
ops::AttentionResult recent_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                    const Distance& distance, double scale);
/// As ops::attention_backward.
ops::AttentionGradients recent_backward(const at::Tensor& grad_out, const at::Tensor& q,
                                        const at::Tensor& k, const at::Tensor& v,
                                        const ops::AttentionResult& whole, const Distance& distance,
                                        double scale);

}  // namespace titan::nn
