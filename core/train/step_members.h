// The members of a run's steps: those that its plugins bring and the trainer's own. Used by the
// trainer and by played steps.
#pragma once

#include <memory>
#include <vector>

#include "core/train/optimizer_step.h"
#include "core/train/run.h"
#include "core/train/step_runner.h"

namespace titan::core {

/// Makes and owns the trainer's own. `run` outlives this.
class StepMembers {
 public:
  /// `before_update`: called before weights change. `config` outlives this.
  StepMembers(Run& run, const JobConfig& config, BeforeUpdate before_update);
  const StepOrder& order() const { return order_; }

 private:
  void add(std::vector<StepMember*>& place, std::unique_ptr<StepMember> member);

  std::vector<std::unique_ptr<StepMember>> own_;
  StepOrder order_;
};

}  // namespace titan::core
