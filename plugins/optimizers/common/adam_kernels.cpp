#include "adam_kernels.h"

#include <cmath>

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>

#include "number.h"

namespace titan::optimizers {
namespace {

double step_size(const AdamFactors& factors, double lr, double step) {
  return -lr / (1 - std::pow(factors.beta1, step));
}

double correction(const AdamFactors& factors, double step) {
  return std::sqrt(1 - std::pow(factors.beta2, step));
}

void update_fused(const AdamLists& l, const AdamFactors& f, Decay decay, double lr) {
  if (l.parameters.front().is_meta()) return;  // needs no memory, and has no kernel there
  if (decay == Decay::decoupled)
    at::_fused_adamw_(l.parameters, l.gradients, l.exp_avgs, l.exp_avg_sqs, {}, l.steps, lr,
                      f.beta1, f.beta2, f.weight_decay, f.eps, /*amsgrad=*/false,
                      /*maximize=*/false, {}, {});
  else
    at::_fused_adam_(l.parameters, l.gradients, l.exp_avgs, l.exp_avg_sqs, {}, l.steps, lr, f.beta1,
                     f.beta2, f.weight_decay, f.eps, /*amsgrad=*/false, /*maximize=*/false, {}, {});
}

void update_foreach(const AdamLists& l, const AdamFactors& f, Decay decay, double lr) {
  std::vector<at::Tensor> gradients = l.gradients;
  if (decay == Decay::decoupled)
    at::_foreach_mul_(l.parameters, 1 - lr * f.weight_decay);
  else
    gradients = at::_foreach_add(gradients, l.parameters, f.weight_decay);
  at::_foreach_lerp_(l.exp_avgs, gradients, 1 - f.beta1);
  at::_foreach_mul_(l.exp_avg_sqs, f.beta2);
  at::_foreach_addcmul_(l.exp_avg_sqs, gradients, gradients, 1 - f.beta2);
  // one per parameter: a parameter whose first gradient came later has fewer steps
  std::vector<at::Scalar> step_sizes, corrections;
  for (const double t : l.counts) {
    step_sizes.emplace_back(step_size(f, lr, t));
    corrections.emplace_back(correction(f, t));
  }
  std::vector<at::Tensor> denominators = at::_foreach_sqrt(l.exp_avg_sqs);
  at::_foreach_div_(denominators, corrections);
  at::_foreach_add_(denominators, f.eps);
  at::_foreach_addcdiv_(l.parameters, l.exp_avgs, denominators, step_sizes);
}

void update_in_loop(const AdamLists& l, const AdamFactors& f, Decay decay, double lr) {
  for (size_t i = 0; i < l.parameters.size(); ++i) {
    at::Tensor p = l.parameters[i], g = l.gradients[i], m = l.exp_avgs[i], v = l.exp_avg_sqs[i];
    if (decay == Decay::decoupled)
      p.mul_(number(1 - lr * f.weight_decay));
    else
      g = g.add(p, f.weight_decay);
    m.lerp_(g, 1 - f.beta1);
    v.mul_(number(f.beta2)).addcmul_(g, g, 1 - f.beta2);
    const double t = l.counts[i];
    const at::Tensor denominator = v.sqrt().div_(correction(f, t)).add_(f.eps);
    p.addcdiv_(m, denominator, step_size(f, lr, t));
  }
}

}  // namespace

void update_adam(const AdamLists& lists, const AdamFactors& factors, Decay decay,
                 Implementation implementation, double lr) {
  if (lists.parameters.empty()) return;
  switch (implementation) {
    case Implementation::fused:
      return update_fused(lists, factors, decay, lr);
    case Implementation::foreach:
      return update_foreach(lists, factors, decay, lr);
    case Implementation::for_loop:
      return update_in_loop(lists, factors, decay, lr);
  }
}

}  // namespace titan::optimizers
