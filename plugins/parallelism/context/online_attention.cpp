#include "online_attention.h"

#include <ATen/ops/empty.h>

namespace titan::context_parallel {

at::ScalarType sum_type(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

void OnlineAttention::set(const Block& block, const ops::AttentionResult& result) {
  const at::ScalarType type = sum_type(q_);
  const int64_t width = result.out.size(3);
  if (result.out.sizes().slice(0, 3) == q_.sizes().slice(0, 3)) {
    out_ = result.out.to(type);
    logsumexp_ = result.logsumexp.contiguous();
    return;
  }
  if (!out_.defined()) {
    const auto options = q_.options().dtype(type);
    out_ = at::empty({q_.size(0), q_.size(2), q_.size(1), width}, options).transpose(1, 2);
    logsumexp_ = at::empty(q_.sizes().slice(0, 3), options);
  }
  block.queries_of(out_).copy_(result.out);
  block.queries_of(logsumexp_).copy_(result.logsumexp);
}

void OnlineAttention::merge(const Block& block, const ops::AttentionResult& result) {
  ops::merge_attention({block.queries_of(out_), block.queries_of(logsumexp_)}, result);
}

ops::AttentionResult OnlineAttention::finish() const {
  return {out_.to(q_.scalar_type()), logsumexp_};
}

}  // namespace titan::context_parallel
