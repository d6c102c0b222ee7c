// Runs the frozen reference model that a loss compares the run's model with ([reference]). Used by
// assembly.
#pragma once

#include <cstdint>

#include <titan/model.h>
#include <titan/reference_loss.h>
#include <titan/transform.h>

namespace titan::core {

/// The reference model, and the output that the loss needs of it.
struct ReferenceCalls {
  ModelPart& part;         ///< of this rank, through all its transforms
  StepExecutor& executor;  ///< of that part
  ReferenceOutput output;
  int64_t vocab_size;
  at::TensorOptions options;  ///< of the output: fp32 or double, on the device
};

/// Runs each step's microbatches through the reference model before the run's own model. On ranks
/// that have them, the heads of the reference write the required output into Batch::reference. All
/// microbatches of a step hold theirs at the same time. Thread: trainer thread.
class ReferenceExecutor final : public ExecutorWrapper {
 public:
  /// Sets losses in the heads of the reference that write the output. The objects in `calls`
  /// outlive this.
  explicit ReferenceExecutor(const ReferenceCalls& calls);

  StepLoss forward_backward(const StepBatches& batches) override;
  StepLoss forward(const StepBatches& batches) override;

 private:
  StepBatches with_reference(const StepBatches& batches);

  ReferenceCalls calls_;
  bool has_head_ = false;
};

}  // namespace titan::core
