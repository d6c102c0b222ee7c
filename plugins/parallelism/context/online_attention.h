// Merges attention over several blocks of keys. Used by the kernel's forward.
#pragma once

#include <ATen/core/Tensor.h>
#include <titan/ops/attention.h>

#include "blocks.h"

namespace titan::context_parallel {

/// The dtype of sums: fp32, double for double.
at::ScalarType sum_type(const at::Tensor& x);

/// The softmax over all keys added so far, in fp32 (double for double).
///
/// With o, l the result so far and o', l' that of a further block (l = log Σ exp score): o <- o +
/// sigmoid(l' - l) (o' - o), l <- log(exp l + exp l'). Liu et al., 2023. A result without keys (l =
/// -inf) has no weight.
class OnlineAttention {
 public:
  /// For queries `q` (rows, H, n, hd).
  explicit OnlineAttention(at::Tensor q) : q_(std::move(q)) {}

  /// The first keys of the block's queries. Each query is set once, before any merge.
  void set(const Block& block, const ops::AttentionResult& result);
  /// Further keys of queries that were set.
  void merge(const Block& block, const ops::AttentionResult& result);

  /// Out in q's dtype, `transpose(1, 2)` contiguous; logsumexp contiguous.
  ops::AttentionResult finish() const;

 private:
  at::Tensor q_;
  at::Tensor out_, logsumexp_;
};

}  // namespace titan::context_parallel
