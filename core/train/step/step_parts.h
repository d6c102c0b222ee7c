// Collects the objects of a step from the chosen plugins, by the interfaces that they implement.
// Used by assembly.
#pragma once

#include <memory>
#include <vector>

#include <titan/fault_tolerance/replicas.h>
#include <titan/local_gradients.h>
#include <titan/nn/step_module.h>
#include <titan/optimizer.h>
#include <titan/transform.h>
#include <titan/watcher.h>

#include "core/config/schema/job_config.h"

namespace titan::core {

/// The core's own objects for the microbatches of a run. The layers' hooks refer to them: they live
/// as long as the run.
struct StepWorkers {
  std::unique_ptr<StepExecutor> sequential;  ///< null if a transform runs the microbatches
  std::unique_ptr<LocalGradients>
      local_gradients;  ///< null unless the optimizer works in the backward and no reducer of a
                        ///< plugin reports gradients to it
  std::unique_ptr<GradientReducer>
      module_runs;  ///< reports each attempt of a step to modules; null if no module needs it
};

/// Assigns plugins to their places in a step, and rejects by name plugins that exclude each other.
/// Plugins outlive this.
class StepParts {
 public:
  explicit StepParts(const JobConfig& config)
      : updates_early_(config.optimizer_section.early_step_in_backward) {}

  /// Called in the order in which transforms were applied. ComponentError of `chosen`: another one
  /// already runs the microbatches, or it undoes steps although the optimizer works inside the
  /// backward.
  void add(ModelTransform& transform, const Selection& chosen);
  /// Adds an optimizer, or each member of a joined one, that is a step member.
  void add(Optimizer& optimizer, const Selection& chosen);

  /// Adds its follower and its wrapper, which encloses those of transforms. ComponentError of
  /// `chosen`: the wrapper undoes steps although the optimizer works inside the backward.
  void add(Watcher& watcher, const Selection& chosen);
  /// Follows every attempt of a step, like the reducers of gradients.
  void add_follower(GradientReducer& follower) { followers_.push_back(&follower); }
  /// config Error: `chosen` undoes steps although the optimizer works inside the backward.
  void require_commits(const Selection& chosen, bool undoes_steps) const;

  /// [after all transforms, before connect] Every module that runs and is a StepMember takes part,
  /// after the transforms, in the model's order; nn::StepModule is connected to `mesh`.
  /// ComponentError of `model`: one undoes steps although the optimizer works inside the backward.
  void add_modules(ModelPart& part, const dist::Mesh& mesh, const Selection& model);

  /// Connects the executor of the microbatches and all its wrappers; returns the outermost. Makes
  /// the members of `workers`, which is empty, that are needed. `recorder`: of the mesh.
  StepExecutor& connect(ModelPart& part, Device& device, dist::Recorder& recorder,
                        StepWorkers& workers);

  /// [after connect] The executor of the microbatches, without its wrappers.
  StepExecutor& executor() const { return *executor_; }
  const std::vector<StepMember*>& members() const { return members_; }
  const std::vector<AfterOptimizerStep*>& after_optimizer_step() const { return after_; }
  const std::vector<ExportTransform*>& exports() const { return exports_; }
  /// Transforms with states, which checkpoints hold with the optimizer's.
  const std::vector<StatefulOptimizer*>& stateful() const { return stateful_; }
  /// Null unless a transform is one.
  ReplicaMember* replicas() const { return replicas_; }

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
  const Selection* executes_ = nullptr;  // the plugin of `executor_`
  std::vector<Wrapper> wrappers_;        // innermost first
  std::vector<StepMember*> members_;
  std::vector<nn::StepModule*> modules_;
  std::vector<AfterOptimizerStep*> after_;
  std::vector<ExportTransform*> exports_;
  std::vector<StatefulOptimizer*> stateful_;
  ReplicaMember* replicas_ = nullptr;
};

}  // namespace titan::core
