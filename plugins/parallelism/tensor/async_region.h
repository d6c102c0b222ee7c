// A region whose gather and scatter run inside its projections, piece by piece, so that they
// overlap with the products. `enable_async_tensor_parallel`.
#pragma once

#include <memory>

#include "model_layout.h"
#include "piecewise.h"

namespace titan::tensor_parallel {

/// Whether every projection below the region is cut, exactly one gives its output, there are not
/// more of the others than one operation takes (4), and nobody has swapped their kernels, which is
/// logged. Other regions communicate around themselves.
bool can_be_async(const RegionLayout& region);

/// Swaps the kernels of the region's projections. The column projections that read the region's
/// input share one gather: the first computes the results of all. The row projection's result is
/// this rank's part of the sequence, summed over the ranks.
void make_async(const RegionLayout& region, const std::shared_ptr<PieceLink>& link);

}  // namespace titan::tensor_parallel
