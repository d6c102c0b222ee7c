// Sums over ranks the gradients of weights that every rank holds whole but uses on its own tokens
// or heads. Used by TensorParallel.
#pragma once

#include <vector>

#include <titan/model.h>
#include <titan/transform.h>

namespace titan::tensor_parallel {

/// Sums the gradient of each of `parameters` over "tp" once per backward, before it is added to
/// those of earlier microbatches and before any data-parallel transform sees it. `layer` uses these
/// parameters. If a parameter is cut over some of these ranks by its first forward, it is summed
/// over the others only: the transform that cut it reduces the gradients over its own ranks.
void sum_partial_gradients(nn::Module& layer, const std::vector<nn::Parameter*>& parameters,
                           const TransformContext& context);

}  // namespace titan::tensor_parallel
