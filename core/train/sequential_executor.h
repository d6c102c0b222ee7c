// Runs the microbatches of a step one after the other through the whole model: what runs when no
// pipeline does.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include <titan/transform.h>

namespace titan::core {

class SequentialExecutor final : public StepExecutor {
 public:
  void connect(StepContext context) override { context_.emplace(std::move(context)); }
  StepLoss forward_backward(const StepBatches& batches) override;
  StepLoss forward(const StepBatches& batches) override;
  at::Tensor logits(const Batch& batch) override;

 private:
  /// `auxiliary`: null in validation.
  at::Tensor loss_of(const Batch& microbatch, int64_t num_valid_tokens,
                     const std::shared_ptr<AuxiliaryLosses>& auxiliary);

  std::optional<StepContext> context_;
};

}  // namespace titan::core
