#include "core/train/loss/reference_executor.h"

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <titan/nn/head.h>
#include <titan/sequence_loss.h>

namespace titan::core {
namespace {

RowsLoss nothing(const at::Tensor& like) {
  return {.sum = at::zeros({}, like.options().dtype(at::kDouble))};
}

/// A loss for the reference's heads that stores its inputs: Batch::reference is memory of the whole
/// batch, and each microbatch holds its rows of it.
class KeepsLikelihoods final : public SequenceLoss {
 public:
  RowsLoss of_sequences(const at::Tensor& log_likelihoods, const Batch& batch) override {
    batch.reference.copy_(log_likelihoods);
    return nothing(log_likelihoods);
  }
  int64_t num_terms(const Batch&) const override { return 0; }
};

class KeepsLogits final : public DistillationLoss {
 public:
  RowsLoss of_rows_beside(const at::Tensor& logits, const at::Tensor& reference,
                          const at::Tensor&) override {
    reference.copy_(logits);
    return nothing(logits);
  }
};

std::shared_ptr<Loss> keeper_of(ReferenceOutput output) {
  if (output == ReferenceOutput::logits) return std::make_shared<KeepsLogits>();
  return std::make_shared<KeepsLikelihoods>();
}

}  // namespace

ReferenceExecutor::ReferenceExecutor(const ReferenceCalls& calls) : calls_(calls) {
  const std::shared_ptr<Loss> keeper = keeper_of(calls.output);
  calls_.part.visit_modules([&](const std::string&, nn::Module& module) {
    auto* head = dynamic_cast<nn::OutputHead*>(&module);
    if (!head) return;
    head->set_loss({.loss = keeper});
    has_head_ = true;
  });
}

StepLoss ReferenceExecutor::forward_backward(const StepBatches& batches) {
  return inner().forward_backward(with_reference(batches));
}

StepLoss ReferenceExecutor::forward(const StepBatches& batches) {
  return inner().forward(with_reference(batches));
}

StepBatches ReferenceExecutor::with_reference(const StepBatches& batches) {
  const at::NoGradGuard no_grad;
  StepBatches asked = batches;
  if (has_head_)
    for (Batch& batch : asked.microbatches) {
      std::vector<int64_t> shape = batch.tokens.sizes().vec();
      if (calls_.output == ReferenceOutput::logits) shape.push_back(calls_.vocab_size);
      batch.reference = at::empty(shape, calls_.options);
    }
  calls_.executor.forward(asked);
  return asked;
}

}  // namespace titan::core
