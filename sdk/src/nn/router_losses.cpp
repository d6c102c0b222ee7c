#include "router_losses.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros_like.h>

namespace titan::nn {

using at::Tensor;

Tensor balance_loss_sum(const Tensor& scores, const Tensor& experts) {
  const double num_experts = static_cast<double>(scores.size(2)),
               top_k = static_cast<double>(experts.size(2));
  const Tensor chosen = at::zeros_like(scores).scatter_(-1, experts, 1.0);
  const Tensor share = (scores / scores.sum(-1, /*keepdim=*/true)).mean(1);  // (B, E)
  const Tensor load = chosen.mean(1) * (num_experts / top_k);
  return (share * load).sum() * static_cast<double>(scores.size(1));
}

Tensor z_loss_sum(const Tensor& logits, const Batch& batch) {
  // of operations that the meta device has too
  const Tensor highest = logits.detach().amax(-1, /*keepdim=*/true);
  const Tensor log_sum = (logits - highest).exp().sum(-1).log() + highest.squeeze(-1);  // (B, S)
  if (!batch.labels.defined()) return log_sum.square().sum();
  const int64_t length = logits.size(1);
  const Tensor labels = batch.labels.narrow(1, batch.places.part.number * length, length);
  return log_sum.square().masked_fill(labels.eq(Batch::kIgnoredLabel), 0).sum();
}

}  // namespace titan::nn
