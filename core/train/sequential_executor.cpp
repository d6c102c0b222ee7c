#include "core/train/sequential_executor.h"

#include <ATen/TensorOperators.h>

namespace titan::core {
namespace {

Batch to_device(Batch batch, c10::Device device) {
  for (at::Tensor* tensor : {&batch.tokens, &batch.labels, &batch.positions, &batch.documents})
    if (tensor->defined()) *tensor = tensor->to(device, /*non_blocking=*/true);
  return batch;
}

}  // namespace

SequentialExecutor::SequentialExecutor(ModelPart& part, Device& device,
                                       std::vector<const BatchSplitter*> splitters)
    : part_(part), device_(device), splitters_(std::move(splitters)) {}

StepLoss SequentialExecutor::forward_backward(const StepBatches& batches) {
  StepLoss total;
  for (const Batch& microbatch : batches.microbatches) {
    Batch batch = to_device(microbatch, device_.device());
    for (const BatchSplitter* splitter : splitters_) batch = splitter->split(batch);
    const at::Tensor loss =
        part_.forward(at::Tensor(), batch) / static_cast<double>(batches.num_valid_tokens);
    loss.backward();
    total.normalized_sum += loss.item<double>();
  }
  return total;
}

}  // namespace titan::core
