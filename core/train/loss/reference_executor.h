// Asks the frozen second model that a loss compares the run's with ([reference]). Used by assembly.
#pragma once

#include <cstdint>

#include <titan/model.h>
#include <titan/reference_loss.h>
#include <titan/transform.h>

namespace titan::core {

/// What of the reference model is asked, and for what.
struct ReferenceCalls {
  ModelPart& part;         ///< of this rank, through all its transforms
  StepExecutor& executor;  ///< of that part
  ReferenceOutput output;
  int64_t vocab_size;
  at::TensorOptions options;  ///< of what the heads say: fp32 or double, on the device
};

/// Runs each step's microbatches through the reference model before they go through the run's own:
/// the heads of the reference write what the loss asks for into Batch::reference, on the ranks that
/// have them. All microbatches of a step have theirs at once. Thread: trainer thread.
class ReferenceExecutor final : public ExecutorWrapper {
 public:
  /// Gives the heads of the reference their losses. What `calls` refers to outlives this.
  explicit ReferenceExecutor(const ReferenceCalls& calls);

  StepLoss forward_backward(const StepBatches& batches) override;
  StepLoss forward(const StepBatches& batches) override;

 private:
  StepBatches with_reference(const StepBatches& batches);

  ReferenceCalls calls_;
  bool has_head_ = false;
};

}  // namespace titan::core
