// Runs the microbatches of a step one after the other through the whole model. Used when there is
// no pipeline.
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

  /// Steps of equal shapes are replayed by `graph`. Null: no step is replayed.
  void replay_by(std::unique_ptr<StepGraph> graph) { graph_ = std::move(graph); }
  /// [after connect]
  const std::vector<GradientReducer*>& reducers() const { return context_->reducers; }

 private:
  /// `auxiliary`: null in validation.
  at::Tensor loss_of(const Batch& microbatch, int64_t num_valid_tokens,
                     const std::shared_ptr<AuxiliaryLosses>& auxiliary);

  /// Forward and backward of each microbatch, with the calls of the reducers.
  LossSum run_microbatches(const StepBatches& batches,
                           const std::shared_ptr<AuxiliaryLosses>& auxiliary);
  /// The work that a graph records. Returns the sum of the losses, on the device.
  at::Tensor work_to_record(const std::vector<Batch>& microbatches, int64_t num_valid_tokens);

  std::optional<StepContext> context_;
  std::unique_ptr<StepGraph> graph_;
};

}  // namespace titan::core
