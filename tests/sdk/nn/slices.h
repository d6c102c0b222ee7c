// The part of a whole tensor that a rank holds. Used by the tests of whatever cuts parameters.
#pragma once

#include <ATen/core/Tensor.h>
#include <titan/nn/parameter.h>

namespace titan::testing {

/// A view of `whole`.
at::Tensor slice_of(at::Tensor whole, const nn::Slice& slice);

}  // namespace titan::testing
