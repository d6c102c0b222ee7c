// Attention over the last tokens only. Beltagy et al., 2020; Jiang et al., 2023 (Mistral).
#pragma once

#include <cmath>

#include <ATen/TensorOperators.h>
#include <titan/nn/attention_layer.h>

namespace own_attention {

using at::Tensor;
using titan::nn::AttentionBlock;
using titan::ops::AttentionResult;

/// softmax(q kᵀ / sqrt(hd)) v over the `size` last tokens, including the query's own. Needs as many
/// key heads as query heads. Uses whole matrices of scores: short code, not fast.
class Window final : public titan::nn::AttentionRule {
 public:
  explicit Window(int64_t size) : size_(size) {}
  bool needs_places() const override { return true; }

  AttentionResult forward(const Tensor& q, const Tensor& k, const Tensor& v,
                          const AttentionBlock& block) const override {
    // bounds for a query that sees no key here, whose weights are 0
    const Tensor s = scores(q, k, block), highest = s.amax(-1, true).clamp_min(-1e30);
    const Tensor weights = (s - highest).exp(), sum = weights.sum(-1, /*keepdim=*/true);
    return {weights.matmul(v) / sum.clamp_min(1e-30), (sum.log() + highest).squeeze(-1)};
  }
  titan::ops::AttentionGradients backward(const Tensor& grad_out, const Tensor& q, const Tensor& k,
                                          const Tensor& v, const AttentionResult& whole,
                                          const AttentionBlock& block) const override {
    const Tensor weights = (scores(q, k, block) - whole.logsumexp.unsqueeze(-1)).exp();
    const Tensor own = (grad_out * whole.out).sum(-1, /*keepdim=*/true);
    const Tensor ds = weights * (grad_out.matmul(v.transpose(2, 3)) - own) / root(q);
    return {ds.matmul(k), ds.transpose(2, 3).matmul(q), weights.transpose(2, 3).matmul(grad_out)};
  }

 private:
  static double root(const Tensor& q) { return std::sqrt(static_cast<double>(q.size(3))); }
  Tensor scores(const Tensor& q, const Tensor& k, const AttentionBlock& block) const {
    const Tensor age = block.query_places.unsqueeze(1) - block.key_places.unsqueeze(0);
    return (q.matmul(k.transpose(2, 3)) / root(q))
        .masked_fill(age.lt(0) | age.ge(size_), -INFINITY);
  }

  int64_t size_;
};

}  // namespace own_attention
