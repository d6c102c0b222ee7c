#include "core/train/sequential_executor.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "core/train/scalars.h"

namespace titan::core {
namespace {

Batch to_device(Batch batch, c10::Device device) {
  for (at::Tensor* tensor : {&batch.tokens, &batch.labels, &batch.positions})
    if (tensor->defined()) *tensor = tensor->to(device, /*non_blocking=*/true);
  return batch;
}

}  // namespace

SequentialExecutor::SequentialExecutor(ModelPart& part, Device& device,
                                       std::vector<const BatchSplitter*> splitters,
                                       std::vector<GradientReducer*> reducers)
    : part_(part),
      device_(device),
      splitters_(std::move(splitters)),
      reducers_(std::move(reducers)) {}

StepLoss SequentialExecutor::forward_backward(const StepBatches& batches) {
  StepLoss total;
  for (const Batch& microbatch : batches.microbatches) {
    const bool is_last = &microbatch == &batches.microbatches.back();
    for (GradientReducer* reducer : reducers_) reducer->start_microbatch(is_last);
    const at::Tensor loss = loss_of(microbatch, batches.num_valid_tokens);
    loss.backward();
    total.normalized_sum += read_scalar(loss);
  }
  for (GradientReducer* reducer : reducers_) reducer->finish_gradients();
  return total;
}

StepLoss SequentialExecutor::forward(const StepBatches& batches) {
  const at::NoGradGuard no_grad;
  StepLoss total;
  for (const Batch& microbatch : batches.microbatches)
    total.normalized_sum += read_scalar(loss_of(microbatch, batches.num_valid_tokens));
  return total;
}

at::Tensor SequentialExecutor::loss_of(const Batch& microbatch, int64_t num_valid_tokens) {
  Batch batch = to_device(microbatch, device_.device());
  for (const BatchSplitter* splitter : splitters_) batch = splitter->split(batch);
  return part_.forward(at::Tensor(), batch) / static_cast<double>(num_valid_tokens);
}

}  // namespace titan::core
