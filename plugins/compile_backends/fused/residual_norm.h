// Computes the sum of a residual and its normalisation in one pass. Used by Fused.
#pragma once

#include <memory>

#include <titan/nn/rms_norm.h>

namespace titan::fused {

/// One kernel per normalisation. If no sum precedes the normalisation directly, it computes as the
/// layer does.
std::unique_ptr<nn::RmsNormKernel> make_residual_norm();

}  // namespace titan::fused
