// What the chosen plugins do in a step, by what they derive from. Used by assembly.
#pragma once

#include <memory>
#include <vector>

#include <titan/local_gradients.h>
#include <titan/optimizer.h>
#include <titan/transform.h>

#include "core/config/job_config.h"

namespace titan::core {

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

  /// Follows every run of a step, beside those that reduce gradients.
  void add_watcher(GradientReducer& watcher) { watchers_.push_back(&watcher); }

  /// Connects what runs the microbatches, all wrappers around it; gives the outermost. Null
  /// `sequential`: is made where no transform runs them. `local`: is made where nobody reduces
  /// gradients and the optimizer has to know when they are complete.
  StepExecutor& connect(ModelPart& part, Device& device, std::unique_ptr<StepExecutor>& sequential,
                        std::unique_ptr<LocalGradients>& local);

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
  void require_commits(const Selection& chosen, bool undoes_steps) const;

  bool updates_early_;
  std::vector<const BatchSplitter*> splitters_;
  std::vector<GradientReducer*> reducers_;
  std::vector<GradientReducer*> watchers_;
  StepExecutor* executor_ = nullptr;
  const Selection* executes_ = nullptr;  // whose it is
  std::vector<Wrapper> wrappers_;        // innermost first
  std::vector<StepMember*> members_;
  std::vector<AfterOptimizerStep*> after_;
  std::vector<ExportTransform*> exports_;
};

}  // namespace titan::core
