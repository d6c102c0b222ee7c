// The frozen second model that a loss compares the run's with ([reference]). Used by assembly.
#pragma once

#include <memory>

#include <titan/reference_loss.h>
#include <titan/transform.h>

#include "core/config/job_config.h"

namespace titan::core {

struct Run;

/// Runs each step's microbatches through the reference model before they go through the run's own:
/// the heads of the reference write what the loss asks for into Batch::reference, on the ranks that
/// have them. All microbatches of a step have theirs at once. Thread: trainer thread.
class ReferenceModel final : public ExecutorWrapper {
 public:
  /// `run`: a model through all transforms of `job`, of the layout of the run that is trained; its
  /// heads get their losses here. `dtype`: of what they say, fp32 or double.
  ReferenceModel(std::unique_ptr<Run> run, JobConfig job, ReferenceOutput output,
                 at::ScalarType dtype);
  ~ReferenceModel() override;

  Run& run() { return *run_; }
  const JobConfig& job() const { return job_; }

  StepLoss forward_backward(const StepBatches& batches) override;
  StepLoss forward(const StepBatches& batches) override;

 private:
  StepBatches with_reference(const StepBatches& batches);

  std::unique_ptr<Run> run_;
  JobConfig job_;
  ReferenceOutput output_;
  at::ScalarType dtype_;
  bool has_head_ = false;
};

}  // namespace titan::core
