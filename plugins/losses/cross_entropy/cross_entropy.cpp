#include "cross_entropy.h"

#include <ATen/TensorOperators.h>

namespace titan::losses {
namespace {

using at::Tensor;

/// Over the vocabulary. Uses only operations that the meta device has too.
Tensor logsumexp(const Tensor& logits) {
  const Tensor highest = logits.detach().amax(1, /*keepdim=*/true);
  return (logits - highest).exp().sum(1).log() + highest.squeeze(1);
}

}  // namespace

CrossEntropy::CrossEntropy(const CrossEntropyOptions& options, LossContext) : options_(options) {}

std::vector<std::string> CrossEntropy::part_names() const {
  std::vector<std::string> names = {kNegativeLogLikelihood};
  if (options_.z_loss > 0) names.push_back("z_loss");
  return names;
}

RowsLoss CrossEntropy::of_rows(const Tensor& logits, const Tensor& labels) {
  const double cap = options_.logit_softcap, smoothing = options_.label_smoothing;
  const Tensor z = cap > 0 ? (logits / cap).tanh() * cap : logits;  // (n, V)
  const Tensor ignored = labels.eq(Batch::kIgnoredLabel);           // (n)
  const Tensor index = labels.masked_fill(ignored, 0).unsqueeze(1);
  const auto sum = [&](const Tensor& of_rows) {
    return of_rows.masked_fill(ignored, 0).sum(at::kDouble);
  };

  const Tensor lse = logsumexp(z);
  const Tensor nll = sum(lse - z.gather(1, index).squeeze(1));
  RowsLoss loss = {.sum = nll, .parts = {nll}};
  if (smoothing > 0) loss.sum = (1 - smoothing) * nll + smoothing * sum(lse - z.mean(1));
  if (options_.z_loss > 0) {
    loss.parts.push_back(options_.z_loss * sum(lse.square()));
    loss.sum = loss.sum + loss.parts.back();
  }
  return loss;
}

}  // namespace titan::losses
