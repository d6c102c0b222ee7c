// A group that pretends to be one rank of several, for tests of what each rank holds; and bitwise
// comparison.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include <ATen/ops/equal.h>
#include <titan/dist/group.h>

namespace titan::testing {

inline dist::Group fake_group(int rank, int size) {
  return dist::Group("fake", dist::make_fake_backend(rank, size));
}

/// Same shape and the same bits in every element of two fp32 tensors: signed zeros and NaN count.
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() &&
         at::equal(a.detach().contiguous().view(at::kInt), b.detach().contiguous().view(at::kInt));
}

}  // namespace titan::testing
