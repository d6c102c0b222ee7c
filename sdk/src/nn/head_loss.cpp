#include "head_loss.h"

#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <titan/error.h>
#include <titan/reference_loss.h>
#include <titan/sequence_loss.h>
#include <torch/csrc/autograd/autograd.h>

namespace titan::nn {
namespace {

using at::Tensor;

/// A loss and the head that takes its parts.
struct By {
  Loss& loss;
  const ChunksOfHead& head;
};

void check_promises(const By& by, const RowsLoss& loss, int64_t num_rows) {
  TITAN_CHECK(loss.sum.defined() && loss.sum.numel() == 1, plugin,
              "the loss gives no single number for ", num_rows, " rows");
  const size_t num_parts = by.loss.part_names().size();
  TITAN_CHECK(loss.parts.size() == num_parts, plugin, "the loss gives ", loss.parts.size(),
              " parts and names ", num_parts);
}

/// Passes the parts to the head; returns the sum in double.
Tensor taken(const By& by, const RowsLoss& loss) {
  const at::NoGradGuard no_grad;
  std::vector<Tensor> parts;
  for (const Tensor& part : loss.parts) parts.push_back(part.detach().sum());
  if (by.head.take_parts) by.head.take_parts(parts);
  return loss.sum.detach().sum().to(at::kDouble);
}

/// The loss of one chunk's rows. Its graph exists only here.
template <class OfRows>
Tensor loss_of_chunk(const By& by, const Tensor& logits, bool gradient, OfRows&& of_rows) {
  const at::AutoGradMode grad_mode(gradient);
  const Tensor leaf = logits.detach().requires_grad_(gradient);
  const RowsLoss loss = of_rows(leaf);
  check_promises(by, loss, logits.size(0));
  if (gradient && loss.sum.requires_grad())
    logits.detach().copy_(torch::autograd::grad({loss.sum.sum()}, {leaf})[0]);
  else if (gradient)
    logits.detach().zero_();
  return taken(by, loss);
}

/// d(weight · log softmax(logits)[label]) / d(logits) in place. `weights` (n), 0 where a row has no
/// target.
void weigh_in_place(const Tensor& logits, const Tensor& labels, const Tensor& weights) {
  const Tensor sums = likelihoods_in_place(logits, labels).exponential_sums;
  logits.mul_((-weights / sums).unsqueeze(1));
  const Tensor index = labels.masked_fill(labels.eq(Batch::kIgnoredLabel), 0).unsqueeze(1);
  logits.scatter_(1, index, logits.gather(1, index) + weights.unsqueeze(1));
}

Tensor loss_of_sequences(const By& by, SequenceLoss& sequences, const Batch& batch) {
  const Tensor labels = batch.labels.reshape({-1});
  const auto nothing = [](const Tensor& logits) {
    return at::zeros({}, logits.options().dtype(at::kDouble));
  };
  std::vector<Tensor> chunks;
  {
    const at::NoGradGuard no_grad;
    by.head.sum([&](const Tensor& logits, const Tensor& of_chunk, bool) {
      chunks.push_back(likelihoods_in_place(logits, of_chunk).logs);
      return nothing(logits);
    });
  }
  const bool gradient = at::GradMode::is_enabled();
  const Tensor leaf = at::cat(chunks).view(batch.labels.sizes()).requires_grad_(gradient);
  const RowsLoss loss = sequences.of_sequences(leaf, batch);
  check_promises(by, loss, leaf.size(0));
  Tensor weights;
  if (gradient) {
    weights = loss.sum.requires_grad() ? torch::autograd::grad({loss.sum.sum()}, {leaf})[0]
                                       : at::zeros_like(leaf);
    weights = weights.reshape({-1}).masked_fill(labels.eq(Batch::kIgnoredLabel), 0);
  }
  const Tensor value = taken(by, loss);
  if (!gradient) return value.to(leaf.scalar_type());

  int64_t first = 0;  // chunks arrive in the order of the rows
  return by.head.sum([&](const Tensor& logits, const Tensor& of_chunk, bool differentiates) {
    const int64_t begin = std::exchange(first, first + logits.size(0));
    if (differentiates) weigh_in_place(logits, of_chunk, weights.narrow(0, begin, logits.size(0)));
    return begin == 0 ? value : nothing(logits);
  });
}

Tensor loss_with_reference(const By& by, DistillationLoss& distillation, const Batch& batch) {
  TITAN_ASSERT(batch.reference.defined());
  const Tensor reference = batch.reference.flatten(0, 1);
  int64_t first = 0;  // chunks arrive in the order of the rows
  return by.head.sum([&](const Tensor& logits, const Tensor& labels, bool gradient) {
    const int64_t begin = std::exchange(first, first + logits.size(0));
    return loss_of_chunk(by, logits, gradient, [&](const Tensor& leaf) {
      return distillation.of_rows_beside(leaf, reference.narrow(0, begin, leaf.size(0)), labels);
    });
  });
}

}  // namespace

Likelihoods likelihoods_in_place(const Tensor& logits, const Tensor& labels) {
  const Tensor ignored = labels.eq(Batch::kIgnoredLabel);
  const Tensor index = labels.masked_fill(ignored, 0).unsqueeze(1);
  const Tensor highest = logits.amax(1, /*keepdim=*/true);
  const Tensor at_label = (logits.gather(1, index) - highest).squeeze(1);
  const Tensor sums = logits.sub_(highest).exp_().sum(1);
  return {(at_label - sums.log()).masked_fill_(ignored, 0), sums};
}

Tensor loss_by_component(Loss& loss, const ChunksOfHead& chunks, const Batch& batch) {
  const By by{loss, chunks};
  if (auto* sequences = dynamic_cast<SequenceLoss*>(&loss))
    return loss_of_sequences(by, *sequences, batch);
  if (auto* distillation = dynamic_cast<DistillationLoss*>(&loss))
    return loss_with_reference(by, *distillation, batch);
  return chunks.sum([&](const Tensor& logits, const Tensor& labels, bool gradient) {
    return loss_of_chunk(by, logits, gradient,
                         [&](const Tensor& leaf) { return loss.of_rows(leaf, labels); });
  });
}

}  // namespace titan::nn
