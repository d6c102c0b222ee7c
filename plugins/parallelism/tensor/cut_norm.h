// RMS norm over rows that are cut over ranks by heads. Used by TensorParallel.
#pragma once

#include <memory>

#include <titan/dist/group.h>
#include <titan/nn/rms_norm.h>

namespace titan::tensor_parallel {

/// nn::RmsNorm over x (..., dim / n), weight (dim / n) on each of the group's n ranks. The ranks
/// all-reduce the sum of squares of each row, one number in fp32 (double for a double x), in the
/// forward and in the backward.
std::unique_ptr<nn::RmsNormKernel> make_cut_norm(const dist::Group& group);

}  // namespace titan::tensor_parallel
