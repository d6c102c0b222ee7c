// Runs the microbatches of a step one after the other through the whole model: what runs when no
// pipeline does.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include <titan/transform.h>

#include "core/train/held_numbers.h"

namespace titan::core {

class SequentialExecutor final : public StepExecutor {
 public:
  void connect(StepContext context) override { context_.emplace(std::move(context)); }
  StepLoss forward_backward(const StepBatches& batches) override;
  StepLoss forward(const StepBatches& batches) override;
  at::Tensor logits(const Batch& batch) override;

  /// The losses of steps that `held` holds are left to it. It outlives the last step.
  void leave_losses_to(HeldNumbers& held) { held_ = &held; }

 private:
  /// `auxiliary`: null in validation.
  at::Tensor loss_of(const Batch& microbatch, int64_t num_valid_tokens,
                     const std::shared_ptr<AuxiliaryLosses>& auxiliary);

  bool is_holding() const { return held_ && held_->is_holding(); }

  std::optional<StepContext> context_;
  HeldNumbers* held_ = nullptr;  // null: every loss is read
};

}  // namespace titan::core
