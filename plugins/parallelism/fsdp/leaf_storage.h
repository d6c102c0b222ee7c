// Leaf tensors whose memory is allocated and freed while autograd keeps referring to them. Used by
// units: a whole parameter has memory only while it is in use.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace titan::fsdp {

/// A leaf of this shape that has no memory yet.
at::Tensor make_empty_leaf(const std::vector<int64_t>& sizes, at::ScalarType dtype,
                           c10::Device device, bool requires_grad);

/// Moves the storage of `memory` into `leaf`. `memory` is contiguous, has at least as many bytes as
/// `leaf` and has no other user. References that autograd saved see the new memory; the leaf's
/// version does not change, because its value is the same.
void give_memory(const at::Tensor& leaf, const at::Tensor& memory);

/// Frees the memory behind `leaf`.
void drop_memory(const at::Tensor& leaf);

}  // namespace titan::fsdp
