#include "lion.h"

#include <ATen/core/grad_mode.h>

namespace lion {

Lion::Lion(const LionOptions& options, titan::OptimizerContext context)
    : options_(options),
      parameters_(std::move(context.parameters)),
      momentum_(add_state("exp_avg", parameters_)) {}

void Lion::step(double lr_factor) {
  at::NoGradGuard no_grad;
  const double lr = options_.lr * lr_factor;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor gradient = parameters_[i]->grad();
    if (!gradient.defined()) continue;
    const at::Tensor& momentum = momentum_[i];
    const at::Tensor& weight = parameters_[i]->shard();
    const at::Tensor direction = momentum.lerp(gradient, 1 - options_.beta1).sign_();
    weight.mul_(1 - lr * options_.weight_decay).sub_(direction, lr);
    momentum.lerp_(gradient, 1 - options_.beta2);
  }
}

}  // namespace lion
