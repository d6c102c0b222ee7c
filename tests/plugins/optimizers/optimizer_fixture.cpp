#include "tests/plugins/optimizers/optimizer_fixture.h"

#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>

namespace titan::testing {

std::unique_ptr<Parameter> parameter(std::string name, const std::vector<float>& values) {
  auto p = std::make_unique<Parameter>(std::vector<int64_t>{static_cast<int64_t>(values.size())},
                                       nn::Init::constant(0));
  p->set_name(std::move(name));
  p->materialize(c10::kCPU, at::kFloat, 1);
  at::NoGradGuard no_grad;
  at::Tensor shard = p->shard();
  shard.copy_(at::tensor(values));
  return p;
}

void set_gradient(Parameter& p, const std::vector<float>& values) {
  p.shard().mutable_grad() = at::tensor(values);
}

std::vector<float> values_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().reshape({-1}).contiguous();
  return std::vector<float>(flat.const_data_ptr<float>(),
                            flat.const_data_ptr<float>() + flat.numel());
}
std::vector<float> values_of(const Parameter& p) {
  return values_of(p.shard());
}

std::unique_ptr<Optimizer> optimizer(std::string_view name,
                                     std::initializer_list<Value::Member> options,
                                     std::vector<Parameter*> parameters) {
  return create<Optimizer>(name, Value::map(options), {std::move(parameters)});
}

std::map<std::string, at::Tensor> state_of(Optimizer& optimizer) {
  std::map<std::string, at::Tensor> state;
  dynamic_cast<StatefulOptimizer&>(optimizer).visit_state(
      [&](Parameter& p, const OptimizerState& declared, const at::Tensor& tensor) {
        state[p.name() + "/" + declared.name()] = tensor.clone();
      });
  return state;
}

void set_state(Optimizer& optimizer, const std::map<std::string, at::Tensor>& state) {
  dynamic_cast<StatefulOptimizer&>(optimizer).visit_state(
      [&](Parameter& p, const OptimizerState& declared, const at::Tensor& tensor) {
        tensor.copy_(state.at(p.name() + "/" + declared.name()));
      });
}

void take_steps(Optimizer& optimizer, const std::vector<Parameter*>& parameters, int first,
                int count) {
  for (int step = first; step < first + count; ++step) {
    for (Parameter* p : parameters) {
      std::vector<float> gradient = values_of(*p);
      for (size_t i = 0; i < gradient.size(); ++i)
        gradient[i] = gradient[i] * 0.5f + static_cast<float>(step % 3 - 1) + 0.1f * i;
      set_gradient(*p, gradient);
    }
    optimizer.step(1.0 / (1 + step));
  }
}

bool resumes_exactly(std::string_view name, std::initializer_list<Value::Member> options) {
  const std::vector<float> start = {1, -2, 3.5, 0.25, 7};
  const auto straight = parameter("w", start), resumed = parameter("w", start);
  take_steps(*optimizer(name, options, {straight.get()}), {straight.get()}, 0, 6);

  const auto before = optimizer(name, options, {resumed.get()});
  take_steps(*before, {resumed.get()}, 0, 3);
  const auto after = optimizer(name, options, {resumed.get()});
  set_state(*after, state_of(*before));
  take_steps(*after, {resumed.get()}, 3, 3);
  return values_of(*straight) == values_of(*resumed) && values_of(*straight) != start;
}

}  // namespace titan::testing
