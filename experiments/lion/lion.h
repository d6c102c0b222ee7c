// Lion: steps by the sign of an interpolated momentum, one state tensor per weight. Chen et al.,
// 2023 (arXiv:2302.06675).
#pragma once

#include <vector>

#include <titan/optimizer.h>

namespace lion {

struct LionOptions {
  double lr = 1e-4;           // base learning rate; a third to a tenth of AdamW's
  double beta1 = 0.9;         // share of the momentum in the direction of a step
  double beta2 = 0.99;        // decay of the momentum
  double weight_decay = 1.0;  // decoupled; three to ten times AdamW's
};

/// With g the gradient: w <- w - lr (sign(beta1 m + (1 - beta1) g) + weight_decay w), then m <-
/// beta2 m + (1 - beta2) g. Algorithm 2 of the paper. The momentum starts at zero and has the
/// weight's shape and type.
class Lion final : public titan::Optimizer, public titan::StatefulOptimizer {
 public:
  Lion(const LionOptions& options, titan::OptimizerContext context);

  void step(double lr_factor) override;
  double lr() const override { return options_.lr; }

 private:
  LionOptions options_;
  std::vector<titan::Parameter*> parameters_;
  titan::OptimizerState& momentum_;  // of parameters_; "exp_avg" in checkpoints
};

}  // namespace lion
