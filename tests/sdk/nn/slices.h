// The shard of a whole tensor that a rank holds. Used by the tests of code that shards parameters.
#pragma once

#include <ATen/core/Tensor.h>
#include <titan/nn/parameter.h>

namespace titan::testing {

/// A view of `whole`.
at::Tensor slice_of(at::Tensor whole, const nn::Slice& slice);

/// The largest difference, relative to the largest element of the whole expected tensor.
double relative_error(const at::Tensor& actual, const at::Tensor& expected,
                      const at::Tensor& whole);

}  // namespace titan::testing
