// What the chosen plugins do in a step, by what they derive from. Used by assembly.
#pragma once

#include <memory>
#include <vector>

#include <titan/local_gradients.h>
#include <titan/nn/step_module.h>
#include <titan/optimizer.h>
#include <titan/transform.h>
#include <titan/watcher.h>

#include "core/config/schema/job_config.h"

namespace titan::core {

/// What the core itself brings for the microbatches of a run. With the layers' hooks: it lives as
/// long as the run.
struct StepWorkers {
  std::unique_ptr<StepExecutor> sequential;  ///< null where a transform runs the microbatches
  std::unique_ptr<LocalGradients>
      local_gradients;  ///< null unless the optimizer works in the backward
                        ///< and nobody else tells it of gradients
  std::unique_ptr<GradientReducer>
      module_runs;  ///< tells modules when a run begins; null without any
};

/// Sorts plugins into the places that a step has, and refuses by name those that do not go
/// together. Plugins outlive this.
class StepParts {
 public:
  explicit StepParts(const JobConfig& config)
      : updates_early_(config.optimizer_section.early_step_in_backward) {}

  /// In the order in which transforms were applied. ComponentError of `chosen`: another one runs
  /// the microbatches already; or it undoes steps although the optimizer works inside the backward.
  void add(ModelTransform& transform, const Selection& chosen);
  /// An optimizer, or each of those that are joined in it, takes part as well.
  void add(Optimizer& optimizer, const Selection& chosen);

  /// Its follower and its wrapper, which goes around those of transforms. ComponentError of
  /// `chosen`: the wrapper undoes steps although the optimizer works inside the backward.
  void add(Watcher& watcher, const Selection& chosen);
  /// Follows every run of a step, beside those that reduce gradients.
  void add_follower(GradientReducer& follower) { followers_.push_back(&follower); }
  /// config Error: `chosen` undoes steps although the optimizer works inside the backward.
  void require_commits(const Selection& chosen, bool undoes_steps) const;

  /// [after all transforms, before connect] Every module that runs and is a StepMember takes part,
  /// after the transforms, in the model's order; nn::StepModule is connected to `mesh`.
  /// ComponentError of `model`: one undoes steps although the optimizer works inside the backward.
  void add_modules(ModelPart& part, const dist::Mesh& mesh, const Selection& model);

  /// Connects what runs the microbatches, all wrappers around it; gives the outermost. Fills
  /// `workers`, which are none yet, as far as they are needed. `recorder`: of the mesh.
  StepExecutor& connect(ModelPart& part, Device& device, dist::Recorder& recorder,
                        StepWorkers& workers);

  /// [after connect] What runs the microbatches itself.
  StepExecutor& executor() const { return *executor_; }
  const std::vector<StepMember*>& members() const { return members_; }
  const std::vector<AfterOptimizerStep*>& after_optimizer_step() const { return after_; }
  const std::vector<ExportTransform*>& exports() const { return exports_; }

 private:
  struct Wrapper {
    ExecutorWrapper* wrapper;
    const Selection* chosen;
  };
  void add_executor(StepExecutor& executor, const Selection& chosen);
  void add_member(StepMember& member, const Selection& chosen);

  bool updates_early_;
  std::vector<const BatchSplitter*> splitters_;
  std::vector<GradientReducer*> reducers_;
  std::vector<GradientReducer*> followers_;
  StepExecutor* executor_ = nullptr;
  const Selection* executes_ = nullptr;  // whose it is
  std::vector<Wrapper> wrappers_;        // innermost first
  std::vector<StepMember*> members_;
  std::vector<nn::StepModule*> modules_;
  std::vector<AfterOptimizerStep*> after_;
  std::vector<ExportTransform*> exports_;
};

}  // namespace titan::core
