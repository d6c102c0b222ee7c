// Sums tensors over replica groups so that all of them get equal bits.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/dist/group.h>

#include "quantized_rows.h"

namespace titan::semi_sync {

/// Replaces each tensor by its sum over `group`, whose ranks pass tensors of equal shapes. The
/// terms are added in the order of ranks, so the sum depends neither on `bucket_bytes`, the most
/// that is sent at once, nor on the transport. Thread: any, as the group's only user.
void sum_over(const dist::Group& group, const std::vector<at::Tensor>& tensors,
              int64_t bucket_bytes);

/// The same in 8-bit numbers (quantized_rows.h): each tensor is sent as rows, its first
/// dimension's. The sums are rounded again. About a quarter of the bytes of float32.
void sum_over_quantized(const dist::Group& group, const std::vector<at::Tensor>& tensors,
                        RowType type);

}  // namespace titan::semi_sync
