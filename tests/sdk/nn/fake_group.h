// A group that pretends to be one rank of several, for tests of what each rank holds; and bitwise
// comparison.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>
#include <titan/dist/group.h>

namespace titan::testing {

dist::Group fake_group(int rank, int size, const std::string& name = "fake");

/// Same shape and the same bits in every element of two fp32 tensors: signed zeros and NaN count.
bool same_bits(const at::Tensor& a, const at::Tensor& b);

}  // namespace titan::testing
