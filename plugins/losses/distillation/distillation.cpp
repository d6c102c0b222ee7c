#include "distillation.h"

#include <ATen/TensorOperators.h>

namespace titan::losses {
namespace {

using at::Tensor;

/// Over the vocabulary. Uses only operations that the meta device has too.
Tensor log_softmax(const Tensor& logits) {
  const Tensor below = logits - logits.detach().amax(1, /*keepdim=*/true);
  return below - below.exp().sum(1, /*keepdim=*/true).log();
}

}  // namespace

Distillation::Distillation(const DistillationOptions& options, LossContext) : options_(options) {}

std::vector<std::string> Distillation::part_names() const {
  return {kNegativeLogLikelihood, "kl"};
}

RowsLoss Distillation::of_rows_beside(const Tensor& logits, const Tensor& reference,
                                      const Tensor& labels) {
  const double t = options_.temperature, alpha = options_.alpha;
  const Tensor ignored = labels.eq(Batch::kIgnoredLabel);
  const Tensor index = labels.masked_fill(ignored, 0).unsqueeze(1);
  const auto sum = [&](const Tensor& of_rows) {
    return of_rows.masked_fill(ignored, 0).sum(at::kDouble);
  };
  const Tensor nll = sum(-log_softmax(logits).gather(1, index).squeeze(1));
  const Tensor student = log_softmax(logits / t);
  const Tensor teacher = log_softmax(reference.to(logits.scalar_type()) / t);
  const Tensor of_rows = options_.divergence == Divergence::forward
                             ? (teacher.exp() * (teacher - student)).sum(1)
                             : (student.exp() * (student - teacher)).sum(1);
  const Tensor kl = t * t * sum(of_rows);
  return {.sum = alpha > 0 ? (1 - alpha) * kl + alpha * nll : kl, .parts = {nll, kl}};
}

}  // namespace titan::losses
