// Runs the microbatches of a step one after the other through the whole model: what runs when no
// pipeline does.
#pragma once

#include <vector>

#include <titan/transform.h>

namespace titan::core {

class SequentialExecutor final : public StepExecutor {
 public:
  /// `splitters` cut each batch before it enters the model; `reducers` bring its gradients
  /// together. All references outlive the executor.
  SequentialExecutor(ModelPart& part, Device& device, std::vector<const BatchSplitter*> splitters,
                     std::vector<GradientReducer*> reducers);

  StepLoss forward_backward(const StepBatches& batches) override;
  StepLoss forward(const StepBatches& batches) override;

 private:
  at::Tensor loss_of(const Batch& microbatch, int64_t num_valid_tokens);

  ModelPart& part_;
  Device& device_;
  std::vector<const BatchSplitter*> splitters_;
  std::vector<GradientReducer*> reducers_;
};

}  // namespace titan::core
