#include "core/checkpoint/state.h"

namespace titan::core {

std::vector<StateTensor> weights_of(const ModelPart& part) {
  std::vector<StateTensor> state;
  for (const nn::Parameter* parameter : part.parameters())
    state.push_back({parameter->name(), parameter->global_shape(), parameter->slice(),
                     parameter->shard().detach(), parameter->shardings(), false,
                     parameter->is_copy(), parameter->is_state()});
  return state;
}

std::vector<StateTensor> states_of(Optimizer& optimizer) {
  auto* stateful = dynamic_cast<StatefulOptimizer*>(&optimizer);
  std::vector<StateTensor> state;
  if (!stateful) return state;
  stateful->visit_state([&](Parameter& parameter, std::string_view name, const at::Tensor& tensor) {
    const std::string full_name =
        std::string(kOptimizerPrefix) + std::string(name) + "." + parameter.name();
    if (tensor.numel() == 1 && tensor.dim() == 0) {
      state.push_back({full_name,
                       {1},
                       {{0}, {1}},
                       tensor.view({1}),
                       parameter.shardings(),
                       true,
                       parameter.is_copy()});
      return;
    }
    state.push_back({full_name, parameter.global_shape(), parameter.slice(), tensor,
                     parameter.shardings(), false, parameter.is_copy()});
  });
  return state;
}

void follow_stored_numbers(std::vector<StateTensor>& states, const TensorIndex& index) {
  for (StateTensor& state : states) {
    const auto found = index.tensors.find(state.name);
    if (!state.is_scalar || found == index.tensors.end() || !found->second.shape.empty()) continue;
    state.shape.clear();
    state.slice = {};
    state.tensor = state.tensor.view(at::IntArrayRef());
  }
}

}  // namespace titan::core
