// Updates each parameter as soon as its gradient is complete, inside the backward, and frees the
// gradient: [optimizer] early_step_in_backward.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <titan/model.h>
#include <titan/optimizer.h>
#include <titan/step.h>

#include "core/train/optimizer/optimizer_set.h"
#include "core/train/optimizer/optimizer_step.h"

namespace titan::core {

/// One optimizer per parameter. Gradients never exist all at the same time, so there is no norm and
/// no clipping.
class EarlyOptimizer final : public JoinedOptimizers {
 public:
  /// `optimizers`: of `parameters`, in their order; at least one. Parameters outlive this.
  EarlyOptimizer(const std::vector<Parameter*>& parameters,
                 std::vector<std::unique_ptr<Optimizer>> optimizers);

  /// [before the step's forward]
  void start_step(double lr_factor) { lr_factor_ = lr_factor; }
  /// [after the backward] Does nothing: the backward has updated the weights.
  void step(double) override {}

 private:
  double lr_factor_ = 1;
};

/// Its step member: weights change from `begin` on, so such a step cannot be undone. References
/// outlive this.
class EarlyStep final : public StepMember {
 public:
  EarlyStep(EarlyOptimizer& optimizer, BeforeUpdate before)
      : optimizer_(optimizer), before_(std::move(before)) {}
  void begin(Step& step) override {
    before_();
    optimizer_.start_step(step.lr_factor);
  }

 private:
  EarlyOptimizer& optimizer_;
  BeforeUpdate before_;
};

}  // namespace titan::core
