// Checks weights that are stored under several names, such as a tied head and its embedding. Used
// before weights of other programs are imported.
#pragma once

#include <string>
#include <vector>

#include <titan/checkpoints/tensor_index.h>

#include "core/exchange/weight_names.h"

namespace titan::core {

/// Whether any weight has a copy, so that check_copies has to read both.
bool has_copies(const std::vector<FoundWeight>& weights);

/// Throws a data Error that names both tensors when a copy has other values than the weight that is
/// used, because one of them would be lost. `place` and `model_name` name the weights and the model
/// in it.
void check_copies(const std::vector<FoundWeight>& weights, const TensorIndex& index,
                  const std::string& place, const std::string& model_name);

}  // namespace titan::core
