// Optimizer `SGD`: stochastic gradient descent with momentum, as torch.optim.SGD. Sutskever et al.,
// 2013.
#include <ATen/core/grad_mode.h>

#include <titan/optimizer.h>
#include <titan/plugin.h>

#include "../common/number.h"

namespace {

struct SgdOptions {
  double lr = 8e-4;
  double momentum = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
};

/// With d = g + weight_decay * p: b <- momentum * b + d (b = 0 at first); p <- p - lr * (nesterov ?
/// d + momentum * b : b).
class Sgd final : public titan::Optimizer, public titan::StatefulOptimizer {
 public:
  Sgd(const SgdOptions& options, const titan::OptimizerContext& context)
      : options_(options), parameters_(context.parameters) {
    TITAN_CHECK(!options.nesterov || options.momentum > 0, config,
                "optimizer.nesterov needs optimizer.momentum > 0");
    if (options.momentum != 0) buffers_ = &add_state("momentum_buffer", parameters_);
  }

  double lr() const override { return options_.lr; }

  void step(double lr_factor) override {
    at::NoGradGuard no_grad;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const at::Tensor gradient = parameters_[i]->grad();
      if (!gradient.defined()) continue;
      at::Tensor p = parameters_[i]->shard();
      at::Tensor direction =
          options_.weight_decay != 0 ? gradient.add(p, options_.weight_decay) : gradient;
      if (buffers_) {
        const at::Tensor& buffer = (*buffers_)[i];
        buffer.mul_(titan::optimizers::number(options_.momentum)).add_(direction);
        direction = options_.nesterov ? direction.add(buffer, options_.momentum) : buffer;
      }
      p.sub_(direction, options_.lr * lr_factor);
    }
  }

 private:
  SgdOptions options_;
  std::vector<titan::Parameter*> parameters_;
  titan::OptimizerState* buffers_ = nullptr;  // null without momentum
};

}  // namespace

TITAN_PLUGIN(plugin) {
  using O = SgdOptions;
  plugin.add<Sgd>("SGD", "Stochastic gradient descent with momentum.")
      .option("lr", &O::lr, "Base learning rate")
      .greater_than(0)
      .option("momentum", &O::momentum, "Decay of the momentum buffer; 0: no momentum")
      .at_least(0)
      .less_than(1)
      .option("weight_decay", &O::weight_decay, "Times the weight, added to the gradient")
      .at_least(0)
      .option("nesterov", &O::nesterov, "Nesterov momentum: look ahead along the buffer");
}
