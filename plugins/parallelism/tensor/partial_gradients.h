// Weights that every rank holds whole but uses on its part of the tokens or of the heads: their
// gradients are summed over the ranks.
#pragma once

#include <vector>

#include <titan/model.h>
#include <titan/transform.h>

namespace titan::tensor_parallel {

/// Sums the gradient of each of `parameters` over "tp" once per backward, before it is added to
/// those of earlier microbatches and before any data-parallel transform sees it. `layer` is the one
/// that uses them. One that is cut over some of these ranks by the time of its first forward is
/// summed over the others: whoever has cut it brings it the gradients of the tokens of those.
void sum_partial_gradients(nn::Module& layer, const std::vector<nn::Parameter*>& parameters,
                           const TransformContext& context);

}  // namespace titan::tensor_parallel
