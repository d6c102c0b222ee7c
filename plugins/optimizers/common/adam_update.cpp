#include "adam_update.h"

#include <optional>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <c10/core/ScalarType.h>

#include <titan/nn/rounding.h>

namespace titan::optimizers {
namespace {

/// As StateForm::dtype wants it.
std::optional<at::ScalarType> moment_dtype(StateDtype dtype) {
  switch (dtype) {
    case StateDtype::bfloat16:
      return at::kBFloat16;
    case StateDtype::float32:
      return at::kFloat;
    case StateDtype::as_stored:
      break;
  }
  return std::nullopt;
}

void write_back(const at::Tensor& to, const at::Tensor& from) {
  if (!to.is_same(from)) to.copy_(from);
}

}  // namespace

AdamUpdate::AdamUpdate(const AdamSettings& settings, const std::vector<Parameter*>& parameters,
                       uint64_t seed, StatefulOptimizer& owner)
    : settings_(settings),
      parameters_(parameters),
      seed_(seed),
      step_(owner.add_state("step", parameters, {.is_number = true})),
      exp_avg_(
          owner.add_state("exp_avg", parameters, {.dtype = moment_dtype(settings.state_dtype)})),
      exp_avg_sq_(owner.add_state("exp_avg_sq", parameters,
                                  {.dtype = moment_dtype(settings.state_dtype)})) {}

bool AdamUpdate::is_wide(size_t index) {
  const at::ScalarType stored = parameters_[index]->shard().scalar_type();
  return exp_avg_[index].scalar_type() != stored ||
         (settings_.stochastic_rounding && stored == at::kBFloat16);
}

void AdamUpdate::step(double lr) {
  at::NoGradGuard no_grad;
  AdamLists lists;
  std::vector<size_t> wide;
  std::vector<at::Tensor> steps;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor gradient = parameters_[i]->grad();
    if (!gradient.defined()) continue;
    steps.push_back(step_[i]);
    if (is_wide(i)) {
      wide.push_back(i);
      continue;
    }
    lists.parameters.push_back(parameters_[i]->shard());
    lists.gradients.push_back(gradient);
    lists.exp_avgs.push_back(exp_avg_[i]);
    lists.exp_avg_sqs.push_back(exp_avg_sq_[i]);
    lists.steps.push_back(step_[i]);
  }
  if (steps.empty()) return;
  at::_foreach_add_(steps, 1);
  update_adam(lists, settings_.factors, settings_.decay, settings_.implementation, lr);
  for (const size_t i : wide) step_wide(i, lr);
}

void AdamUpdate::step_wide(size_t index, double lr) {
  const Parameter& parameter = *parameters_[index];
  const at::Tensor shard = parameter.shard().detach();
  const at::ScalarType dtype = c10::promoteTypes(shard.scalar_type(), at::kFloat);
  const auto widened = [&](const at::Tensor& tensor) { return tensor.to(dtype); };
  const at::Tensor weight = widened(shard), exp_avg = widened(exp_avg_[index]),
                   exp_avg_sq = widened(exp_avg_sq_[index]);
  update_adam({.parameters = {weight},
               .gradients = {widened(parameter.grad())},
               .exp_avgs = {exp_avg},
               .exp_avg_sqs = {exp_avg_sq},
               .steps = {step_[index]}},
              settings_.factors, settings_.decay, settings_.implementation, lr);
  write_back(exp_avg_[index], exp_avg);
  write_back(exp_avg_sq_[index], exp_avg_sq);
  if (!settings_.stochastic_rounding || shard.scalar_type() != at::kBFloat16)
    return write_back(shard, weight);
  const int64_t step = shard.is_meta() ? 1 : step_[index].item().toLong();
  nn::round_stochastically(shard, weight, seed_, parameter.name(), step, parameter.global_shape(),
                           parameter.slice());
}

}  // namespace titan::optimizers
