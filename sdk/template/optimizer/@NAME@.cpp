// Optimizer @FULL_NAME@. As generated, it is gradient descent with momentum:
// b <- momentum b + g, w <- w - lr (b + weight_decay w). Select it with [optimizer] name = "@FULL_NAME@".
#include <vector>

#include <ATen/core/grad_mode.h>

#include <titan/optimizer.h>
#include <titan/plugin.h>

namespace {

struct @CLASS@Options {
  double lr = 1e-2;           // base learning rate
  double momentum = 0.9;      // decay of the running gradient
  double weight_decay = 0.0;  // decoupled, per step
};

class @CLASS@ final : public titan::Optimizer, public titan::StatefulOptimizer {
 public:
  @CLASS@(const @CLASS@Options& options, titan::OptimizerContext context)
      : options_(options), parameters_(std::move(context.parameters)), momentum_(add_state("momentum", parameters_)) {}

  double lr() const override { return options_.lr; }

  void step(double lr_factor) override {
    at::NoGradGuard no_grad;
    const double lr = options_.lr * lr_factor;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const at::Tensor gradient = parameters_[i]->grad();
      if (!gradient.defined()) continue;
      const at::Tensor& weight = parameters_[i]->shard();
      const at::Tensor& momentum = momentum_[i];
      momentum.mul_(options_.momentum).add_(gradient);
      weight.mul_(1 - lr * options_.weight_decay).sub_(momentum, lr);
    }
  }

 private:
  @CLASS@Options options_;
  std::vector<titan::Parameter*> parameters_;
  titan::OptimizerState& momentum_;  // of parameters_, initially zero; add_state() makes checkpoints hold it
};

}  // namespace

TITAN_PLUGIN(plugin) {
  using O = @CLASS@Options;
  plugin.add<@CLASS@>("@FULL_NAME@", "Gradient descent with momentum.")
      .option("lr", &O::lr, "Base learning rate").greater_than(0)
      .option("momentum", &O::momentum, "Decay of the running gradient").at_least(0).less_than(1)
      .option("weight_decay", &O::weight_decay, "Decoupled decay per step").at_least(0);
}
