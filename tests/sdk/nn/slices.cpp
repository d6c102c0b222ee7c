#include "tests/sdk/nn/slices.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/max.h>

namespace titan::testing {

at::Tensor slice_of(at::Tensor whole, const nn::Slice& slice) {
  for (size_t dim = 0; dim < slice.sizes.size(); ++dim)
    whole = whole.narrow(static_cast<int64_t>(dim), slice.offsets[dim], slice.sizes[dim]);
  return whole;
}

double relative_error(const at::Tensor& actual, const at::Tensor& expected,
                      const at::Tensor& whole) {
  if (expected.numel() == 0) return 0;
  const double largest = (actual.detach() - expected).abs().max().item<double>();
  return largest / std::max(whole.abs().max().item<double>(), 1e-300);
}

}  // namespace titan::testing
