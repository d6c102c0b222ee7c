#include "core/train/optimizer/early_optimizer.h"

#include <utility>

namespace titan::core {

EarlyOptimizer::EarlyOptimizer(const std::vector<Parameter*>& parameters,
                               std::vector<std::unique_ptr<Optimizer>> optimizers)
    : JoinedOptimizers(std::move(optimizers)) {
  for (size_t i = 0; i < parameters.size(); ++i)
    parameters[i]->on_complete_gradient([this, i](Parameter& parameter) {
      members()[i]->step(lr_factor_);
      parameter.clear_gradient();
    });
}

}  // namespace titan::core
