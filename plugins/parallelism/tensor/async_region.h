// A region whose gather and scatter run inside its projections, piece by piece, so that they
// overlap with the products (`enable_async_tensor_parallel`). Used by TensorParallel.
#pragma once

#include <memory>

#include "model_layout.h"
#include "piecewise.h"

namespace titan::tensor_parallel {

/// Whether all projections below the region are cut, exactly one of them produces its output, at
/// most 4 others read its input, and no plugin has replaced their kernels (which is logged). Other
/// regions communicate before and after instead.
bool can_be_async(const RegionLayout& region);

/// Replaces the kernels of the region's projections. The column projections that read the region's
/// input share one gather: the first computes the results of all. The result of the row projection
/// is this rank's part of the sequence, summed over the ranks.
void make_async(const RegionLayout& region, const std::shared_ptr<PieceLink>& link);

}  // namespace titan::tensor_parallel
