// Runs the microbatches of a step one after the other through the whole model: what runs when no
// pipeline does.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <titan/loss_sum.h>
#include <titan/transform.h>

#include "core/train/step/step_graph.h"

namespace titan::core {

class SequentialExecutor final : public StepExecutor {
 public:
  void connect(StepContext context) override { context_.emplace(std::move(context)); }
  StepLoss forward_backward(const StepBatches& batches) override;
  StepLoss forward(const StepBatches& batches) override;
  at::Tensor logits(const Batch& batch) override;

  /// Steps that are alike are replayed by it. Null: none is.
  void replay_by(std::unique_ptr<StepGraph> graph) { graph_ = std::move(graph); }
  /// [after connect]
  const std::vector<GradientReducer*>& reducers() const { return context_->reducers; }

 private:
  /// `auxiliary`: null in validation.
  at::Tensor loss_of(const Batch& microbatch, int64_t num_valid_tokens,
                     const std::shared_ptr<AuxiliaryLosses>& auxiliary);

  /// Forward and backward of each, and what reducers do around them.
  LossSum run_microbatches(const StepBatches& batches,
                           const std::shared_ptr<AuxiliaryLosses>& auxiliary);
  /// What a graph is recorded of. The sum of the losses, on the device.
  at::Tensor work_to_record(const std::vector<Batch>& microbatches, int64_t num_valid_tokens);

  std::optional<StepContext> context_;
  std::unique_ptr<StepGraph> graph_;
};

}  // namespace titan::core
