// The sum of a residual and its normalisation in one pass.
#pragma once

#include <memory>

#include <titan/nn/rms_norm.h>

namespace titan::fused {

/// One for each normalisation. Where nothing is added before it, or something comes between the sum
/// and the normalisation, it computes what the layer does.
std::unique_ptr<nn::RmsNormKernel> make_residual_norm();

}  // namespace titan::fused
