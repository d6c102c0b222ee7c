#include "adam_update.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/zeros.h>
#include <c10/core/ScalarType.h>

#include <titan/memory_use.h>
#include <titan/nn/rounding.h>

namespace titan::optimizers {
namespace {

at::ScalarType state_dtype(StateDtype dtype, at::ScalarType stored) {
  switch (dtype) {
    case StateDtype::bfloat16:
      return at::kBFloat16;
    case StateDtype::float32:
      return at::kFloat;
    case StateDtype::as_stored:
      break;
  }
  return stored;
}

void write_back(const at::Tensor& to, const at::Tensor& from) {
  if (!to.is_same(from)) to.copy_(from);
}

}  // namespace

AdamUpdate::AdamUpdate(const AdamSettings& settings, const std::vector<Parameter*>& parameters,
                       uint64_t seed)
    : settings_(settings), parameters_(parameters), seed_(seed), states_(parameters_.size()) {}

/// Made at the first use: a parameter without a gradient never costs memory.
AdamUpdate::State& AdamUpdate::ready_state(size_t index) {
  State& state = states_[index];
  if (state.step.defined()) return state;
  const MemoryUseScope use(MemoryUse::optimizer_states);
  const at::Tensor& shard = parameters_[index]->shard();
  const at::TensorOptions options = shard.options().requires_grad(false);
  const at::ScalarType dtype = state_dtype(settings_.state_dtype, shard.scalar_type());
  state.step = at::zeros({}, options.dtype(at::kFloat));
  state.exp_avg = at::zeros(shard.sizes(), options.dtype(dtype));
  state.exp_avg_sq = at::zeros(shard.sizes(), options.dtype(dtype));
  return state;
}

bool AdamUpdate::is_wide(const Parameter& parameter, const State& state) const {
  const at::ScalarType stored = parameter.shard().scalar_type();
  return state.exp_avg.scalar_type() != stored ||
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
    State& state = ready_state(i);
    steps.push_back(state.step);
    if (is_wide(*parameters_[i], state)) {
      wide.push_back(i);
      continue;
    }
    lists.parameters.push_back(parameters_[i]->shard());
    lists.gradients.push_back(gradient);
    lists.exp_avgs.push_back(state.exp_avg);
    lists.exp_avg_sqs.push_back(state.exp_avg_sq);
    lists.steps.push_back(state.step);
  }
  if (steps.empty()) return;
  at::_foreach_add_(steps, 1);
  update_adam(lists, settings_.factors, settings_.decay, settings_.implementation, lr);
  for (const size_t i : wide) step_wide(*parameters_[i], states_[i], lr);
}

void AdamUpdate::step_wide(const Parameter& parameter, State& state, double lr) const {
  const at::Tensor shard = parameter.shard().detach();
  const at::ScalarType dtype = c10::promoteTypes(shard.scalar_type(), at::kFloat);
  const auto widened = [&](const at::Tensor& tensor) { return tensor.to(dtype); };
  const at::Tensor weight = widened(shard), exp_avg = widened(state.exp_avg),
                   exp_avg_sq = widened(state.exp_avg_sq);
  update_adam({.parameters = {weight},
               .gradients = {widened(parameter.grad())},
               .exp_avgs = {exp_avg},
               .exp_avg_sqs = {exp_avg_sq},
               .steps = {state.step}},
              settings_.factors, settings_.decay, settings_.implementation, lr);
  write_back(state.exp_avg, exp_avg);
  write_back(state.exp_avg_sq, exp_avg_sq);
  if (!settings_.stochastic_rounding || shard.scalar_type() != at::kBFloat16)
    return write_back(shard, weight);
  const int64_t step = shard.is_meta() ? 1 : state.step.item().toLong();
  nn::round_stochastically(shard, weight, seed_, parameter.name(), step, parameter.global_shape(),
                           parameter.slice());
}

void AdamUpdate::visit_state(const StatefulOptimizer::StateVisitor& visit) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    State& state = ready_state(i);
    visit(*parameters_[i], "step", state.step);
    visit(*parameters_[i], "exp_avg", state.exp_avg);
    visit(*parameters_[i], "exp_avg_sq", state.exp_avg_sq);
  }
}

}  // namespace titan::optimizers
