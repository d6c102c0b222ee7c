// Takes one step through its stages: begin, forward and backward, reduced, judge, then commit, skip
// or abort and once more. Used by the trainer and by simulated steps.
#pragma once

#include <vector>

#include <titan/dist/group.h>
#include <titan/model.h>
#include <titan/step.h>
#include <titan/transform.h>

namespace titan::core {

/// Who takes part in a step, in the order in which they act. All outlive the last step.
struct StepOrder {
  std::vector<StepMember*> first;  ///< the trainer's own: what a step is given
  std::vector<StepMember*> plugins;
  std::vector<StepMember*> last;  ///< the trainer's own: what is done with its gradients
};

/// The verdict is the greatest of all plugins' on all ranks; where these commit, the trainer's own
/// members are asked one after the other until one does not, each of them of the same opinion on
/// all ranks. Thread: trainer thread.
class StepRunner {
 public:
  /// `world`: all ranks that run the step together. `device`: where they communicate.
  StepRunner(ModelPart& part, StepExecutor& executor, const StepOrder& order,
             const dist::Group& world, c10::Device device);

  /// Runs `step`, of which number and batches are given, until it is committed or skipped. On
  /// return no parameter has a gradient. An error up to the verdict reaches the caller after every
  /// member that has begun the attempt has aborted it; one in commit or skip finds weights that may
  /// have changed already, and nothing is undone. data Error: it was repeated kMostAttempts times;
  /// plugin Error: a member judges that said it never would.
  Verdict run(Step& step);

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
  bool has_votes_ = false;  // some plugin may ask for another verdict than commit
};

}  // namespace titan::core
