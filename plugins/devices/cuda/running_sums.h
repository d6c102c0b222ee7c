// Where groups of rows begin or end, for kernels that read it on the device.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

namespace titan::composite {

enum class SumsFrom { zero, first };

/// int32 sums of `counts` up to each, on `device`; `zero`: a 0 before them. The host knows them and
/// does not wait for the copy.
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
