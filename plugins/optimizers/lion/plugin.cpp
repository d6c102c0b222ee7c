// Optimizer `Lion`: moves every weight by the same amount, in the direction of the sign of an
// averaged gradient. Chen et al., "Symbolic discovery of optimization algorithms", 2023.
#include <ATen/core/grad_mode.h>

#include <titan/optimizer.h>
#include <titan/plugin.h>

#include "../common/number.h"

namespace {

using titan::optimizers::number;

struct LionOptions {
  double lr = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0.1;
};

/// With g the gradient, m its moving average (0 at first): p <- p (1 - lr weight_decay) - lr
/// sign(beta1 m + (1-beta1) g); m <- beta2 m + (1-beta2) g.
class Lion final : public titan::Optimizer, public titan::StatefulOptimizer {
 public:
  Lion(const LionOptions& options, const titan::OptimizerContext& context)
      : options_(options),
        parameters_(context.parameters),
        averages_(add_state("exp_avg", parameters_)) {}

  double lr() const override { return options_.lr; }

  void step(double lr_factor) override {
    at::NoGradGuard no_grad;
    const double lr = options_.lr * lr_factor;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const at::Tensor gradient = parameters_[i]->grad();
      if (!gradient.defined()) continue;
      const at::Tensor& average = averages_[i];
      const at::Tensor direction =
          average.mul(number(options_.beta1)).add_(gradient, 1 - options_.beta1).sign_();
      at::Tensor weight = parameters_[i]->shard();
      weight.mul_(number(1 - lr * options_.weight_decay)).sub_(direction, lr);
      average.mul_(number(options_.beta2)).add_(gradient, 1 - options_.beta2);
    }
  }

 private:
  LionOptions options_;
  std::vector<titan::Parameter*> parameters_;
  titan::OptimizerState& averages_;
};

}  // namespace

TITAN_PLUGIN(plugin) {
  using O = LionOptions;
  plugin.add<Lion>("Lion", "The sign of an averaged gradient; one state per weight.")
      .option("lr", &O::lr, "Base learning rate; a third to a tenth of AdamW's")
      .greater_than(0)
      .option("beta1", &O::beta1, "Share of the moving average in the direction")
      .at_least(0)
      .less_than(1)
      .option("beta2", &O::beta2, "Decay of the moving average of gradients")
      .at_least(0)
      .less_than(1)
      .option("weight_decay", &O::weight_decay, "Decoupled, times the learning rate")
      .at_least(0);
}
