// The update of the weights as a part of a step, and the work that follows it. Members of a step.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include <titan/optimizer.h>
#include <titan/step.h>
#include <titan/transform.h>

namespace titan::core {

/// What has to be done before weights, optimizer states or states of modules change: a checkpoint
/// that still copies them ends its copy.
using BeforeUpdate = std::function<void()>;

/// Comes before every member of a plugin: those change what is saved at commit or skip too, as the
/// states of modules.
class EndOfCopies final : public StepMember {
 public:
  explicit EndOfCopies(BeforeUpdate before) : before_(std::move(before)) {}
  void commit(const Step&) override { before_(); }
  void skip(const Step&) override { before_(); }

 private:
  BeforeUpdate before_;
};

/// References outlive this.
class OptimizerStep final : public StepMember {
 public:
  explicit OptimizerStep(Optimizer& optimizer) : optimizer_(optimizer) {}
  void commit(const Step& step) override { optimizer_.step(step.lr_factor); }

 private:
  Optimizer& optimizer_;
};

/// The members are those of plugins, in the order in which they were applied.
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
