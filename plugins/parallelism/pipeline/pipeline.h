// Pipeline parallelism: each rank holds some of the model's layers, and the microbatches of a step
// pass through the ranks in the order of a schedule.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <titan/loss_sum.h>
#include <titan/transform.h>

#include "options.h"
#include "stage.h"
#include "stage_links.h"
#include "tied_gradients.h"

namespace titan::pipeline {

/// Keeps this rank's stages and runs the plan that the core made of the chosen schedule. The last
/// stage computes the loss, and all ranks receive it. Parameters keep their names. A weight that
/// several stages use is kept by each of them, with the sum of their gradients. Huang et al., 2019
/// (GPipe); Narayanan et al., 2021.
class Pipeline final : public Parallelism, public StepExecutor {
 public:
  Pipeline(const PipelineOptions& options, TransformContext) : options_(options) {}

  Phase phase() const override { return Phase::split; }
  void apply(ModelPart& part, const TransformContext& context) override;
  void connect(StepContext context) override { step_.emplace(std::move(context)); }
  StepLoss forward_backward(const StepBatches& batches) override;
  StepLoss forward(const StepBatches& batches) override;
  /// Runs stage after stage, whatever the schedule; the last one broadcasts the logits.
  at::Tensor logits(const Batch& batch) override;

  /// For each parameter, the stages whose layers read it.
  using Users = std::map<nn::Parameter*, std::vector<int>>;

 private:
  /// One action of this rank, and its role in the whole plan.
  struct Task {
    PipelineAction action;
    bool ends_gradients = false;  ///< completes its stage's weight gradients in a step's last round
  };

  void keep_own_stages(ModelPart& part, const std::vector<LayerRange>& ranges);
  void list_tasks(const Users& users);
  /// `auxiliary`: null in validation.
  void start_round(const Batch& batch, const StepBatches& step,
                   const std::shared_ptr<AuxiliaryLosses>& auxiliary);
  void run(const PipelineAction& action);
  void run_forward(Stage& stage, int microbatch);
  void run_backward(Stage& stage, const PipelineAction& action);
  at::Tensor empty_like_boundary(const Boundary& boundary) const;
  LossSum end_round();

  Stage& stage(int index);
  bool is_here(int stage) const;

  PipelineOptions options_;
  const PipelinePlan* plan_ = nullptr;
  dist::Recorder* recorder_ = nullptr;
  dist::Group group_;
  std::optional<StepContext> step_;
  std::vector<Stage> stages_;  // of this rank, ascending
  std::vector<Task> tasks_;
  std::optional<StageLinks> links_;
  std::optional<TiedGradients> tied_;
  bool splits_ = false;  // some backwards are split into input and weight gradients

  // of the current round
  std::vector<Batch> microbatches_;
  std::vector<at::Tensor> losses_;  // by microbatch, on the rank of the last stage
  int64_t num_valid_tokens_ = 1;
  double gradient_scale_ = 1;
};

}  // namespace titan::pipeline
