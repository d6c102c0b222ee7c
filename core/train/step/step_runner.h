// Runs one step through its stages: begin, forward and backward, reduced, judge, then commit, skip,
// or abort and repeat. Used by the trainer and by simulated steps.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include <titan/dist/group.h>
#include <titan/fault_tolerance/replicas.h>
#include <titan/model.h>
#include <titan/step.h>
#include <titan/transform.h>

namespace titan::core {

/// The members of a step, in the order in which they act. All outlive the last step.
struct StepOrder {
  std::vector<StepMember*> first;  ///< the trainer's own, which prepare the step
  std::vector<StepMember*> plugins;
  std::vector<StepMember*> last;      ///< the trainer's own, which use the gradients
  ReplicaMember* replicas = nullptr;  ///< agrees with the other groups of the run; null: there are
                                      ///< none
};

/// The verdict is the greatest of all plugins' on all ranks. If it is commit, the trainer's own
/// members are asked in turn until one does not commit; each of them judges equally on all ranks.
/// Thread: trainer thread.
class StepRunner {
 public:
  /// `world`: all ranks that run the step together. `device`: where they communicate.
  StepRunner(ModelPart& part, StepExecutor& executor, const StepOrder& order,
             const dist::Group& world, c10::Device device);

  /// Runs `step`, whose number and batches are set, until it is committed, skipped or to be begun
  /// anew (Verdict::restart). On return no parameter has a gradient. An error before the verdict
  /// reaches the caller after every member that has begun the attempt has aborted it. After an
  /// error in commit or skip, weights may have changed and nothing is undone. data Error: it was
  /// repeated kMostAttempts times; plugin Error: a member whose undoes_steps() is false does not
  /// commit.
  Verdict run(Step& step);

  /// `f` is called for each attempt that is skipped or repeated; only one rank knows the reason.
  void on_undone(std::function<void(const Step&, const Judgement&)> f) {
    on_undone_ = std::move(f);
  }

  static constexpr int64_t kMostAttempts = 100;

 private:
  Judgement attempt(Step& step);
  void begin(Step& step);
  Judgement judge(const Step& step) const;
  Judgement judge_by_plugins(const Step& step) const;
  void abandon(const Step& step) noexcept;
  void settle(const Judgement& judgement, const Step& step);

  ModelPart& part_;
  StepExecutor& executor_;
  StepOrder order_;
  std::vector<StepMember*> all_;
  size_t num_begun_ = 0;  // of `all_`, in this attempt
  dist::Group world_;
  c10::Device device_;
  std::function<void(const Step&, const Judgement&)> on_undone_;
  bool has_votes_ = false;  // some plugin may give another verdict than commit
};

}  // namespace titan::core
