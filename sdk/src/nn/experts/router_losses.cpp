#include "router_losses.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros_like.h>

namespace titan::nn {

using at::Tensor;

namespace {

/// Mean of x (B, S, E) over the tokens of each sequence that are not padding, `num_tokens` (B, 1)
/// of them: (B, E).
Tensor mean_of_tokens(const Tensor& x, const Tensor& is_padding, const Tensor& num_tokens) {
  return x.masked_fill(is_padding.unsqueeze(-1), 0).sum(1) / num_tokens;
}

}  // namespace

Tensor balance_loss_sum(const Tensor& scores, const Tensor& experts, const Tensor& is_padding) {
  const double num_experts = static_cast<double>(scores.size(2)),
               top_k = static_cast<double>(experts.size(2));
  const Tensor chosen = at::zeros_like(scores).scatter_(-1, experts, 1.0);
  const Tensor shares = scores / scores.sum(-1, /*keepdim=*/true);
  if (is_padding.defined()) {
    const Tensor num_tokens = is_padding.logical_not()
                                  .sum(1, /*keepdim=*/true)
                                  .clamp_min(1)  // a sequence of padding only has no load
                                  .to(scores.scalar_type());
    const Tensor share = mean_of_tokens(shares, is_padding, num_tokens);
    const Tensor load = mean_of_tokens(chosen, is_padding, num_tokens) * (num_experts / top_k);
    return (share * load * num_tokens).sum();
  }
  const Tensor share = shares.mean(1);  // (B, E)
  const Tensor load = chosen.mean(1) * (num_experts / top_k);
  return (share * load).sum() * static_cast<double>(scores.size(1));
}

Tensor z_loss_sum(const Tensor& logits, const Batch& batch) {
  // uses only operations that the meta device has
  const Tensor highest = logits.detach().amax(-1, /*keepdim=*/true);
  const Tensor log_sum = (logits - highest).exp().sum(-1).log() + highest.squeeze(-1);  // (B, S)
  if (!batch.labels.defined()) return log_sum.square().sum();
  const int64_t length = logits.size(1);
  const Tensor labels = batch.labels.narrow(1, batch.places.part.number * length, length);
  return log_sum.square().masked_fill(labels.eq(Batch::kIgnoredLabel), 0).sum();
}

}  // namespace titan::nn
