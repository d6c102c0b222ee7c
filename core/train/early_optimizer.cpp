#include "core/train/early_optimizer.h"

#include <utility>

#include "core/train/optimizer_set.h"

namespace titan::core {

EarlyOptimizer::EarlyOptimizer(const std::vector<Parameter*>& parameters,
                               std::vector<std::unique_ptr<Optimizer>> optimizers)
    : optimizers_(std::move(optimizers)) {
  adopt_states(*this, optimizers_);
  for (size_t i = 0; i < parameters.size(); ++i)
    parameters[i]->on_complete_gradient([this, i](Parameter& parameter) {
      optimizers_[i]->step(lr_factor_);
      parameter.clear_gradient();
    });
}

}  // namespace titan::core
