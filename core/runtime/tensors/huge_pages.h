// Larger pages for memory that is read from end to end again and again. Used where a model's
// weights are read for each token.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace titan::core {

/// Asks the system to hold the memory of `tensors` in pages of 2 MiB: it is found faster than in
/// those of 4 KiB. Counts for memory that has not been written to yet. Tensors on other devices
/// than the CPU are passed over, and a system that has no such pages, or keeps them to itself, goes
/// on as before.
void prefer_huge_pages(const std::vector<at::Tensor>& tensors);

}  // namespace titan::core
