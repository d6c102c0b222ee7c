#include "core/train/sequential_executor.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full_like.h>
#include <titan/nn/auxiliary_loss.h>

#include "core/train/scalars.h"

namespace titan::core {
StepLoss SequentialExecutor::forward_backward(const StepBatches& batches) {
  StepLoss total;
  const std::shared_ptr<AuxiliaryLosses> auxiliary = batches.auxiliary_losses();
  for (GradientReducer* reducer : context_->reducers) reducer->begin_step();
  for (const Batch& microbatch : batches.microbatches) {
    const bool is_last = &microbatch == &batches.microbatches.back();
    for (GradientReducer* reducer : context_->reducers) reducer->start_microbatch(is_last);
    const at::Tensor loss = loss_of(microbatch, batches.num_valid_tokens, auxiliary);
    loss.backward(batches.gradient_scale == 1 ? at::Tensor()
                                              : at::full_like(loss, batches.gradient_scale));
    total.normalized_sum += read_scalar(loss);
  }
  for (GradientReducer* reducer : context_->reducers) reducer->finish_gradients();
  if (const auto sum = auxiliary->sum())
    total.auxiliary = *sum / static_cast<double>(batches.num_valid_tokens);
  return total;
}

StepLoss SequentialExecutor::forward(const StepBatches& batches) {
  const at::NoGradGuard no_grad;
  StepLoss total;
  for (const Batch& microbatch : batches.microbatches)
    total.normalized_sum += read_scalar(loss_of(microbatch, batches.num_valid_tokens, nullptr));
  return total;
}

at::Tensor SequentialExecutor::loss_of(const Batch& microbatch, int64_t num_valid_tokens,
                                       const std::shared_ptr<AuxiliaryLosses>& auxiliary) {
  Batch batch = microbatch.to(context_->device.device());
  for (const BatchSplitter* splitter : context_->splitters) batch = splitter->split(batch);
  batch.auxiliary_losses = auxiliary;
  return context_->part.forward(at::Tensor(), batch) / static_cast<double>(num_valid_tokens);
}

}  // namespace titan::core
