// Attention to keys within a distance of each query. Used by attention_tiles.cpp where a window
// ends within keys of other ranks or keys that were computed earlier.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <titan/ops/attention.h>

namespace titan::nn {

/// Query i is at position query_place + i, key j at key_place + j; the query sees the key if it is
/// less than `window` positions away. All keys are earlier than all queries, or the last keys
/// belong to the queries' own tokens.
struct Distance {
  int64_t query_place = 0;
  int64_t key_place = 0;
  int64_t window = 0;
};

/// Uses matrices of scores in fp32 (double for double), some hundred queries at a time: at most
/// `window` queries and keys are at an edge. A query that sees no key has a logsumexp of -inf and
/// an output of zero.
ops::AttentionResult recent_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                    const Distance& distance, double scale);
/// As ops::attention_backward.
ops::AttentionGradients recent_backward(const at::Tensor& grad_out, const at::Tensor& q,
                                        const at::Tensor& k, const at::Tensor& v,
                                        const ops::AttentionResult& whole, const Distance& distance,
                                        double scale);

}  // namespace titan::nn
