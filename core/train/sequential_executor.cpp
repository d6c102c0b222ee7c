#include "core/train/sequential_executor.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full_like.h>
#include <titan/nn/auxiliary_loss.h>
#include <titan/step_phase.h>

#include "core/train/scalars.h"

namespace titan::core {
namespace {

std::string of_microbatch(const char* what, size_t number) {
  return what + (" of microbatch " + std::to_string(number));
}

}  // namespace

StepLoss SequentialExecutor::forward_backward(const StepBatches& batches) {
  StepLoss total;
  const std::shared_ptr<AuxiliaryLosses> auxiliary = batches.auxiliary_losses();
  for (GradientReducer* reducer : context_->reducers) reducer->begin_step();
  dist::Recorder& recorder = context_->recorder;
  for (size_t i = 0; i < batches.microbatches.size(); ++i) {
    const bool is_last = i + 1 == batches.microbatches.size();
    for (GradientReducer* reducer : context_->reducers) reducer->start_microbatch(is_last);
    at::Tensor loss;
    {
      const PhaseScope phase(recorder, StepPhase::forward, of_microbatch("forward", i));
      loss = loss_of(batches.microbatches[i], batches.num_valid_tokens, auxiliary);
    }
    const PhaseScope phase(recorder, StepPhase::backward, of_microbatch("backward", i));
    loss.backward(batches.gradient_scale == 1 ? at::Tensor()
                                              : at::full_like(loss, batches.gradient_scale));
    total.normalized_sum += read_scalar(loss);
  }
  {
    const PhaseScope phase(recorder, StepPhase::backward);
    for (GradientReducer* reducer : context_->reducers) reducer->finish_gradients();
  }
  if (const auto sum = auxiliary->sum())
    total.auxiliary = *sum / static_cast<double>(batches.num_valid_tokens);
  return total;
}

StepLoss SequentialExecutor::forward(const StepBatches& batches) {
  const at::NoGradGuard no_grad;
  const PhaseScope phase(context_->recorder, StepPhase::forward);
  StepLoss total;
  for (const Batch& microbatch : batches.microbatches)
    total.normalized_sum += read_scalar(loss_of(microbatch, batches.num_valid_tokens, nullptr));
  return total;
}

at::Tensor SequentialExecutor::logits(const Batch& batch) {
  const at::NoGradGuard no_grad;
  const PhaseScope phase(context_->recorder, StepPhase::forward);
  return context_->part.forward(at::Tensor(), batch.to(context_->device.device()));
}

at::Tensor SequentialExecutor::loss_of(const Batch& microbatch, int64_t num_valid_tokens,
                                       const std::shared_ptr<AuxiliaryLosses>& auxiliary) {
  Batch batch = microbatch.to(context_->device.device());
  for (const BatchSplitter* splitter : context_->splitters) batch = splitter->split(batch);
  batch.auxiliary_losses = auxiliary;
  return context_->part.forward(at::Tensor(), batch) / static_cast<double>(num_valid_tokens);
}

}  // namespace titan::core
