// Offsets of groups of rows for kernels that read them on the device. Used by composite_*.cpp.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

namespace titan::composite {

enum class SumsFrom { zero, first };

/// int32 inclusive sums of `counts` on `device`, with a leading 0 for SumsFrom::zero. The copy to
/// the device is asynchronous.
inline at::Tensor running_sums(at::IntArrayRef counts, SumsFrom from, at::Device device) {
  const int64_t more = from == SumsFrom::zero ? 1 : 0;
  const at::Tensor sums =
      at::empty({static_cast<int64_t>(counts.size()) + more},
                at::TensorOptions().dtype(at::kInt).pinned_memory(!device.is_cpu()));
  auto* next = sums.mutable_data_ptr<int32_t>();
  int64_t sum = 0;
  if (more) *next++ = 0;
  for (const int64_t count : counts) *next++ = static_cast<int32_t>(sum += count);
  return sums.to(device, /*non_blocking=*/true);
}

}  // namespace titan::composite
