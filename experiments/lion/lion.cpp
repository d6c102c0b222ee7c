#include "lion.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>

namespace lion {

Lion::Lion(const LionOptions& options, titan::OptimizerContext context)
    : options_(options),
      parameters_(std::move(context.parameters)),
      momentum_(parameters_.size()) {}

void Lion::step(double lr_factor) {
  at::NoGradGuard no_grad;
  const double lr = options_.lr * lr_factor;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor gradient = parameters_[i]->grad();
    if (!gradient.defined()) continue;
    at::Tensor& momentum = momentum_[i];
    if (!momentum.defined()) momentum = at::zeros_like(gradient);
    at::Tensor weight = parameters_[i]->shard();
    const at::Tensor direction = momentum.lerp(gradient, 1 - options_.beta1).sign_();
    weight.mul_(1 - lr * options_.weight_decay).sub_(direction, lr);
    momentum.lerp_(gradient, 1 - options_.beta2);
  }
}

void Lion::visit_state(const StateVisitor& visit) {
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (momentum_[i].defined()) visit(*parameters_[i], "exp_avg", momentum_[i]);
}

}  // namespace lion
