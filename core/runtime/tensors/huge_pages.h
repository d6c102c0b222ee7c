// Larger pages for memory that is read repeatedly from end to end. Used for a model's weights,
// which generation reads for each token.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace titan::core {

/// Asks the system to hold the memory of `tensors` in pages of 2 MiB, whose addresses are
/// translated faster than those of 4 KiB pages. Effective for memory that has not been written to
/// yet. Skips tensors on other devices than the CPU; without effect on a system that has no such
/// pages or does not grant them.
void prefer_huge_pages(const std::vector<at::Tensor>& tensors);

}  // namespace titan::core
