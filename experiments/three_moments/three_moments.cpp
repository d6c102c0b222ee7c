#include "three_moments.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

namespace three_moments {

ThreeMoments::ThreeMoments(const ThreeMomentsOptions& options, titan::OptimizerContext context)
    : options_(options),
      parameters_(std::move(context.parameters)),
      mean_(add_state("mean", parameters_)),
      square_(add_state("mean_square", parameters_)),
      cube_(add_state("mean_cube", parameters_)),
      steps_(add_state("step", parameters_, {.is_number = true})) {}

void ThreeMoments::step(double lr_factor) {
  at::NoGradGuard no_grad;
  const ThreeMomentsOptions& o = options_;
  const double lr = o.lr * lr_factor;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor g = parameters_[i]->grad();
    if (!g.defined()) continue;
    const double t = steps_[i].add_(1).item<double>();
    const at::Tensor squared = g * g;
    const at::Tensor m = mean_[i].lerp_(g, 1 - o.beta1) / (1 - std::pow(o.beta1, t));
    const at::Tensor v = square_[i].lerp_(squared, 1 - o.beta2) / (1 - std::pow(o.beta2, t));
    const at::Tensor s = cube_[i].lerp_(squared * g, 1 - o.beta3) / (1 - std::pow(o.beta3, t));
    const at::Tensor d = v.sqrt().add_(o.eps);
    const at::Tensor lean = (s / d.pow(3)).clamp_(-1, 1).mul_(m.sign());
    parameters_[i]->shard().mul_(1 - lr * o.weight_decay).sub_(m / d * (1 + o.skew * lean), lr);
  }
}

}  // namespace three_moments
