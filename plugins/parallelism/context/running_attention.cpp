#include "running_attention.h"

#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/sigmoid.h>

namespace titan::context_parallel {
namespace {

/// -inf as a number that can be subtracted from itself.
at::Tensor finite(const at::Tensor& logsumexp) {
  return logsumexp.clamp_min(std::numeric_limits<float>::lowest() / 4);
}

}  // namespace

at::ScalarType sum_type(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

void RunningAttention::set(const Block& block, const ops::AttentionResult& result) {
  const at::ScalarType type = sum_type(q_);
  if (result.out.sizes() == q_.sizes()) {
    out_ = result.out.to(type);
    logsumexp_ = result.logsumexp.contiguous();
    return;
  }
  if (!out_.defined()) {
    const auto options = q_.options().dtype(type);
    out_ = at::empty({q_.size(0), q_.size(2), q_.size(1), q_.size(3)}, options).transpose(1, 2);
    logsumexp_ = at::empty(q_.sizes().slice(0, 3), options);
  }
  block.queries_of(out_).copy_(result.out);
  block.queries_of(logsumexp_).copy_(result.logsumexp);
}

void RunningAttention::merge(const Block& block, const ops::AttentionResult& result) {
  const at::Tensor l = block.queries_of(logsumexp_), further = result.logsumexp;
  const at::Tensor weight = at::sigmoid(finite(further) - finite(l)).unsqueeze(-1);
  block.queries_of(out_).lerp_(result.out.to(out_.scalar_type()), weight);
  l.copy_(at::logaddexp(l, further));
}

ops::AttentionResult RunningAttention::finish() const {
  return {out_.to(q_.scalar_type()), logsumexp_};
}

}  // namespace titan::context_parallel
