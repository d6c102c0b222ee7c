// The members of a run's steps: those of its plugins and the trainer's own. Used by the trainer and
// by simulated steps.
#pragma once

#include <memory>
#include <vector>

#include "core/train/assembly/run.h"
#include "core/train/optimizer/device_scalars.h"
#include "core/train/optimizer/optimizer_step.h"
#include "core/train/step/step_runner.h"

namespace titan::core {

/// Makes and owns the trainer's own members. `run` outlives this.
class StepMembers {
 public:
  /// `before_update`: called before weights change. `metrics`: null in simulated steps. `config`
  /// and `metrics` outlive this.
  StepMembers(Run& run, const JobConfig& config, BeforeUpdate before_update,
              StepMember* metrics = nullptr);
  const StepOrder& order() const { return order_; }
  /// Throws a data Error if a number that was kept on the device is NaN or infinite. Called before
  /// a save that no step announced.
  void require_finite() {
    if (device_scalars_) device_scalars_->require_finite();
  }

 private:
  void add(std::vector<StepMember*>& place, std::unique_ptr<StepMember> member);

  std::vector<std::unique_ptr<StepMember>> own_;
  StepOrder order_;
  DeviceScalars* device_scalars_ = nullptr;  // one of own_, if numbers are kept on the device
};

}  // namespace titan::core
