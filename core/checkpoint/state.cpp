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
  stateful->visit_state(
      [&](Parameter& parameter, const OptimizerState& declared, const at::Tensor& tensor) {
        const std::string full_name =
            std::string(kOptimizerPrefix) + declared.name() + "." + parameter.name();
        if (declared.is_whole() || tensor.dim() == 0) {
          const at::Tensor whole = tensor.dim() == 0 ? tensor.view({1}) : tensor;
          const std::vector<int64_t> shape = whole.sizes().vec();
          state.push_back({full_name,
                           shape,
                           {std::vector<int64_t>(shape.size(), 0), shape},
                           whole,
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
    if (state.shape != std::vector<int64_t>{1} || found == index.tensors.end() ||
        !found->second.shape.empty())
      continue;
    state.shape.clear();
    state.slice = {};
    state.tensor = state.tensor.view(at::IntArrayRef());
  }
}

}  // namespace titan::core
