// The update of the weights in a step, and the work around it. Members of a step.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include <titan/optimizer.h>
#include <titan/scales_gradients.h>
#include <titan/step.h>
#include <titan/transform.h>

namespace titan::core {

/// Called before weights, optimizer states or module states change: a checkpoint that still copies
/// them finishes its copy.
using BeforeUpdate = std::function<void()>;

/// Acts before every member of a plugin, because those also change saved values at commit or skip,
/// such as module states.
class WaitForCheckpointCopy final : public StepMember {
 public:
  explicit WaitForCheckpointCopy(BeforeUpdate before) : before_(std::move(before)) {}
  void commit(const Step&) override { before_(); }
  void skip(const Step&) override { before_(); }

 private:
  BeforeUpdate before_;
};

/// References outlive this.
class OptimizerStep final : public StepMember {
 public:
  explicit OptimizerStep(Optimizer& optimizer)
      : optimizer_(optimizer), scales_(dynamic_cast<ScalesGradients*>(&optimizer)) {}

  /// Whether the optimizer multiplies gradients while it reads them.
  bool scales_gradients() const { return scales_ && scales_->scales_gradients(); }
  /// [scales_gradients, before commit] Sets the factor of this step's gradients.
  void set_scale(at::Tensor scale) { scale_ = std::move(scale); }

  void begin(Step&) override { scale_.reset(); }
  void commit(const Step& step) override {
    if (const at::Tensor scale = std::exchange(scale_, {}); scale.defined())
      scales_->step_scaled(step.lr_factor, scale);
    else
      optimizer_.step(step.lr_factor);
  }

 private:
  Optimizer& optimizer_;
  ScalesGradients* scales_;  // the optimizer, or null
  at::Tensor scale_;         // of the gradients of this step, if any
};

/// The objects are those of plugins, in the order in which they were applied.
class AfterOptimizerWork final : public StepMember {
 public:
  explicit AfterOptimizerWork(std::vector<AfterOptimizerStep*> work) : work_(std::move(work)) {}
  void commit(const Step&) override {
    for (AfterOptimizerStep* work : work_) work->after_optimizer_step();
  }

 private:
  std::vector<AfterOptimizerStep*> work_;
};

}  // namespace titan::core
