// A normalisation over rows of which each rank has a part: that of its heads.
#pragma once

#include <memory>

#include <titan/dist/group.h>
#include <titan/nn/rms_norm.h>

namespace titan::tensor_parallel {

/// nn::RmsNorm over x (..., dim / n), weight (dim / n) on each of the group's n ranks: they
/// exchange the sum of squares of each row, one number in fp32 (double for a double x), forwards
/// and backwards.
std::unique_ptr<nn::RmsNormKernel> make_cut_norm(const dist::Group& group);

}  // namespace titan::tensor_parallel
