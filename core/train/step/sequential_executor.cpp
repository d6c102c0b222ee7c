#include "core/train/step/sequential_executor.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full_like.h>
#include <titan/error.h>
#include <titan/nn/auxiliary_loss.h>
#include <titan/step_phase.h>

namespace titan::core {
namespace {

std::string of_microbatch(const char* what, size_t number) {
  return what + (" of microbatch " + std::to_string(number));
}

}  // namespace

StepLoss SequentialExecutor::forward_backward(const StepBatches& batches) {
  if (graph_) {
    const PhaseScope phase(context_->recorder, StepPhase::forward,
                           "forward and backward, replayed");
    const auto work = [this](const std::vector<Batch>& microbatches, int64_t num_valid_tokens) {
      return work_to_record(microbatches, num_valid_tokens);
    };
    if (const auto replayed = graph_->run(batches, work)) {
      LossSum sum;
      sum.add(*replayed);
      return sum.loss(batches.keep_loss_on_device);
    }
  }
  const std::shared_ptr<AuxiliaryLosses> auxiliary = batches.auxiliary_losses();
  StepLoss total = run_microbatches(batches, auxiliary).loss(batches.keep_loss_on_device);
  if (total.device_loss.defined()) return total;
  if (const auto of_layers = auxiliary->sum())
    total.auxiliary = *of_layers / static_cast<double>(batches.num_valid_tokens);
  return total;
}

LossSum SequentialExecutor::run_microbatches(const StepBatches& batches,
                                             const std::shared_ptr<AuxiliaryLosses>& auxiliary) {
  LossSum sum;
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
    sum.add(loss);
  }
  const PhaseScope phase(recorder, StepPhase::backward);
  for (GradientReducer* reducer : context_->reducers) reducer->finish_gradients();
  return sum;
}

at::Tensor SequentialExecutor::work_to_record(const std::vector<Batch>& microbatches,
                                              int64_t num_valid_tokens) {
  StepBatches batches;
  batches.microbatches = microbatches;
  batches.num_valid_tokens = num_valid_tokens;
  const std::shared_ptr<AuxiliaryLosses> auxiliary = batches.auxiliary_losses();
  const LossSum sum = run_microbatches(batches, auxiliary);
  TITAN_CHECK(!auxiliary->has_any(), config,
              "layers have losses of their own, which are read in each step");
  return sum.device_sum();
}

StepLoss SequentialExecutor::forward(const StepBatches& batches) {
  const at::NoGradGuard no_grad;
  const PhaseScope phase(context_->recorder, StepPhase::forward);
  LossSum sum;
  for (const Batch& microbatch : batches.microbatches)
    sum.add(loss_of(microbatch, batches.num_valid_tokens, nullptr));
  return sum.loss(batches.keep_loss_on_device);
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
