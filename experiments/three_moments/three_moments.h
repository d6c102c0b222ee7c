// Adam with a third moment: shortens steps if gradients are skewed against the momentum.
#pragma once

#include <vector>

#include <titan/optimizer.h>

namespace three_moments {

struct ThreeMomentsOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double beta3 = 0.98;  // at least beta2: third powers are noisier than squares
  double eps = 1e-8;
  double skew = 0.5;          // share of a step that skewed gradients can subtract or add
  double weight_decay = 0.1;  // decoupled
};

/// With the running means m, v, s of g, g^2, g^3, each divided by 1 - beta^t, and d = sqrt(v) + eps:
/// w <- (1 - lr weight_decay) w - lr m / d (1 + skew sign(m) clip(s / d^3, -1, 1)).
class ThreeMoments final : public titan::Optimizer, public titan::StatefulOptimizer {
 public:
  ThreeMoments(const ThreeMomentsOptions& options, titan::OptimizerContext context);

  void step(double lr_factor) override;
  double lr() const override { return options_.lr; }

 private:
  ThreeMomentsOptions options_;
  std::vector<titan::Parameter*> parameters_;
  titan::OptimizerState &mean_, &square_, &cube_, &steps_;  // of parameters_
};

}  // namespace three_moments
