#include "core/train/gradient_norm.h"

#include <cmath>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/stack.h>

namespace titan::core {

GradientNorm clip_gradients(ModelPart& part, const dist::Mesh& mesh, double max_norm) {
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  for (const nn::Parameter* parameter : part.parameters())
    if (at::Tensor gradient = parameter->grad(); gradient.defined())
      gradients.push_back(std::move(gradient));
  if (gradients.empty()) return {};

  at::Tensor sum_of_squares =
      at::stack(at::_foreach_norm(gradients, 2.0, at::kFloat)).square().sum();
  mesh.group("fsdp").all_reduce(sum_of_squares, dist::Reduce::sum);
  mesh.group("pp").all_reduce(sum_of_squares, dist::Reduce::sum);
  const double norm = std::sqrt(sum_of_squares.item<double>());
  const double coefficient = max_norm / (norm + 1e-6);
  if (coefficient < 1) at::_foreach_mul_(gradients, coefficient);
  return {norm};
}

}  // namespace titan::core
