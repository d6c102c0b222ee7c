// Updates each parameter as soon as its gradient is complete, inside the backward, and frees the
// gradient: [optimizer] early_step_in_backward.
#pragma once

#include <memory>
#include <vector>

#include <titan/model.h>
#include <titan/optimizer.h>

namespace titan::core {

/// One optimizer per parameter. Gradients never exist all at once, so there is no norm of them and
/// no clipping.
class EarlyOptimizer final : public Optimizer, public StatefulOptimizer {
 public:
  /// `optimizers`: of `parameters`, in their order; at least one. Parameters outlive this.
  EarlyOptimizer(const std::vector<Parameter*>& parameters,
                 std::vector<std::unique_ptr<Optimizer>> optimizers);

  /// [before the step's forward]
  void start_step(double lr_factor) { lr_factor_ = lr_factor; }
  /// [after the backward] Nothing is left to do.
  void step(double) override {}
  double lr() const override { return optimizers_.front()->lr(); }

 private:
  std::vector<std::unique_ptr<Optimizer>> optimizers_;
  double lr_factor_ = 1;
};

}  // namespace titan::core
