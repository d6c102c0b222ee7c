#include "adam_update.h"

#include <algorithm>
#include <optional>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <c10/core/ScalarType.h>

#include <titan/nn/rounding.h>
#include <titan/ops/scaled_adamw_step.h>

namespace titan::optimizers {
namespace {

/// As StateForm::dtype.
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

/// Bitwise as the trainer scales a gradient.
void multiply(at::Tensor gradient, const at::Tensor& scale) {
  const at::ScalarType type = gradient.scalar_type(), wide = c10::promoteTypes(type, at::kFloat);
  const at::Tensor factor = scale.to(gradient.device()).to(wide);
  if (type == wide)
    gradient.mul_(factor);
  else
    gradient.copy_(gradient.to(wide).mul_(factor));
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
      counts_(parameters.size()),
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

/// Adds 1 to the steps of the parameters at `indices`. If the host computes with these numbers, it
/// keeps copies and rereads a tensor only when its version has changed (a checkpoint was loaded):
/// reading in every step would block on the device in every step.
void AdamUpdate::count_step(const std::vector<size_t>& indices) {
  std::vector<at::Tensor> steps;
  for (const size_t i : indices) {
    steps.push_back(step_[i]);
    Count& known = counts_[i];
    if (needs_counts() && !steps.back().is_meta() && known.version != steps.back()._version())
      known.value = steps.back().item<double>();
  }
  at::_foreach_add_(steps, 1);
  for (size_t k = 0; k < indices.size(); ++k) {
    Count& known = counts_[indices[k]];
    ++known.value;
    if (!steps[k].is_cpu())
      known.version = steps[k]._version();  // host memory may change without a new version
  }
}

bool AdamUpdate::needs_counts() const {
  return settings_.implementation != Implementation::fused || settings_.stochastic_rounding;
}

bool AdamUpdate::wants_one_pass() const {
  return settings_.decay == Decay::decoupled && settings_.implementation == Implementation::fused;
}

bool AdamUpdate::scales_gradients() const {
  return wants_one_pass() &&
         std::all_of(parameters_.begin(), parameters_.end(), [](const Parameter* parameter) {
           return ops::has_scaled_adamw_step(parameter->shard());
         });
}

void AdamUpdate::step(double lr, const at::Tensor& scale) {
  at::NoGradGuard no_grad;
  AdamLists lists;
  std::vector<size_t> wide;
  std::vector<size_t> updated;
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i]->grad().defined()) updated.push_back(i);
  if (updated.empty()) return;
  count_step(updated);
  const at::Tensor scale_in_float = scale.defined() ? scale.to(at::kFloat) : scale;
  for (const size_t i : updated) {
    if (step_on_device(i, lr, scale_in_float)) continue;
    const at::Tensor gradient = parameters_[i]->grad();
    if (scale.defined()) multiply(gradient, scale);
    if (is_wide(i)) {
      wide.push_back(i);
      continue;
    }
    lists.parameters.push_back(parameters_[i]->shard());
    lists.gradients.push_back(gradient);
    lists.exp_avgs.push_back(exp_avg_[i]);
    lists.exp_avg_sqs.push_back(exp_avg_sq_[i]);
    lists.steps.push_back(step_[i]);
    lists.counts.push_back(counts_[i].value);
  }
  update_adam(lists, settings_.factors, settings_.decay, settings_.implementation, lr);
  for (const size_t i : wide) step_wide(i, lr);
}

bool AdamUpdate::step_on_device(size_t index, double lr, const at::Tensor& scale) {
  if (!wants_one_pass()) return false;
  const Parameter& parameter = *parameters_[index];
  const AdamFactors& f = settings_.factors;
  const at::Tensor shard = parameter.shard().detach();
  std::optional<ops::StochasticRounding> rounding;
  if (settings_.stochastic_rounding && shard.scalar_type() == at::kBFloat16)
    rounding.emplace(seed_, parameter.name(), parameter.global_shape(), parameter.slice());
  const ops::AdamWNumbers numbers{lr, f.beta1, f.beta2, f.eps, f.weight_decay};
  if (!scale.defined())
    return ops::adamw_step(shard, parameter.grad(), exp_avg_[index], exp_avg_sq_[index],
                           step_[index], numbers, rounding);
  return ops::scaled_adamw_step(shard, parameter.grad(), scale, exp_avg_[index], exp_avg_sq_[index],
                                step_[index], numbers, rounding);
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
               .steps = {step_[index]},
               .counts = {counts_[index].value}},
              settings_.factors, settings_.decay, settings_.implementation, lr);
  write_back(exp_avg_[index], exp_avg);
  write_back(exp_avg_sq_[index], exp_avg_sq);
  if (!settings_.stochastic_rounding || shard.scalar_type() != at::kBFloat16)
    return write_back(shard, weight);
  const auto step = static_cast<int64_t>(counts_[index].value);
  nn::round_stochastically(shard, weight, seed_, parameter.name(), step, parameter.global_shape(),
                           parameter.slice());
}

}  // namespace titan::optimizers
