// Leaf tensors whose memory comes and goes while autograd keeps pointing at them. Used by units: a
// whole parameter has memory only while it is in use.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace titan::fsdp {

/// A leaf of this shape that has no memory yet.
at::Tensor make_empty_leaf(const std::vector<int64_t>& sizes, at::ScalarType dtype,
                           c10::Device device, bool requires_grad);

/// Moves the memory of `memory` (contiguous, at least as many bytes as `leaf` has, nobody else's)
/// behind `leaf`. Whatever autograd saved of the leaf sees it; the leaf's version stays, since its
/// value is what it was.
void give_memory(const at::Tensor& leaf, const at::Tensor& memory);

/// Frees the memory behind `leaf`.
void drop_memory(const at::Tensor& leaf);

}  // namespace titan::fsdp
