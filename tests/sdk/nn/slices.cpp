#include "tests/sdk/nn/slices.h"

namespace titan::testing {

at::Tensor slice_of(at::Tensor whole, const nn::Slice& slice) {
  for (size_t dim = 0; dim < slice.sizes.size(); ++dim)
    whole = whole.narrow(static_cast<int64_t>(dim), slice.offsets[dim], slice.sizes[dim]);
  return whole;
}

}  // namespace titan::testing
