#include "core/train/early_optimizer.h"

#include <utility>

namespace titan::core {

EarlyOptimizer::EarlyOptimizer(const std::vector<Parameter*>& parameters,
                               std::vector<std::unique_ptr<Optimizer>> optimizers)
    : optimizers_(std::move(optimizers)) {
  for (size_t i = 0; i < parameters.size(); ++i)
    parameters[i]->on_complete_gradient([this, i](Parameter& parameter) {
      optimizers_[i]->step(lr_factor_);
      parameter.clear_gradient();
    });
}

void EarlyOptimizer::visit_state(const StateVisitor& visit) {
  for (const auto& optimizer : optimizers_)
    if (auto* stateful = dynamic_cast<StatefulOptimizer*>(optimizer.get()))
      stateful->visit_state(visit);
}

}  // namespace titan::core
