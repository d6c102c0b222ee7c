// A group that acts as one rank of several, for tests of what each rank holds; and bitwise
// comparison.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>
#include <titan/dist/group.h>

namespace titan::testing {

dist::Group fake_group(int rank, int size, const std::string& name = "fake");

/// Same shape and same bits in every element of two fp32 tensors, including signed zeros and NaN.
bool same_bits(const at::Tensor& a, const at::Tensor& b);

}  // namespace titan::testing
