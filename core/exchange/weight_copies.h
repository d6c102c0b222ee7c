// Weights that are stored under several names, such as a tied head beside its embedding. Used
// before weights of others are taken.
#pragma once

#include <string>
#include <vector>

#include <titan/checkpoints/tensor_index.h>

#include "core/exchange/weight_names.h"

namespace titan::core {

/// Whether any weight has a copy: then check_copies reads both.
bool has_copies(const std::vector<FoundWeight>& weights);

/// Throws a data Error naming both tensors where a copy has other values than the weight that is
/// taken: one of them would be lost. `place` names the weights in it, `model_name` the model.
void check_copies(const std::vector<FoundWeight>& weights, const TensorIndex& index,
                  const std::string& place, const std::string& model_name);

}  // namespace titan::core
