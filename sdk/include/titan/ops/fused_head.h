// How many rows a GPU's fused head takes at a time. Used by devices that fuse the head, and by
// estimates of what such a head takes.
#pragma once

#include <algorithm>
#include <cstdint>

#include <titan/ops/chunked_loss.h>

TITAN_OPTIONAL_HEADER(fused_head);

namespace titan::ops {

/// Logits that a fused head holds at a time, in bytes of their type: 2,093 rows of Llama 3's
/// 128,256 in bf16. Products with fewer rows run below the speed that a large GPU reaches.
inline constexpr int64_t kFusedHeadLogitsBytes = int64_t{512} << 20;

/// All rows where their logits need no more memory than the weight's gradient in fp32, which
/// several chunks add up in and one chunk does without; else as many as kFusedHeadLogitsBytes of
/// logits hold, but no fewer than 512. x (rows, dim), weight (words, dim). By shapes and dtype
/// alone. At least 1.
inline int64_t fused_head_rows(const at::Tensor& x, const at::Tensor& weight) {
  const int64_t rows = x.size(0), bytes = x.element_size();
  const bool is_narrow = x.scalar_type() != at::kFloat;
  constexpr int64_t kFloatBytes = sizeof(float);
  if (is_narrow && rows * bytes <= weight.size(1) * kFloatBytes) return std::max<int64_t>(1, rows);
  return chunk_rows(rows, weight.size(0), kFusedHeadLogitsBytes / bytes * kFloatBytes);
}

}  // namespace titan::ops
