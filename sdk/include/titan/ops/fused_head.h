// Number of rows that a GPU's fused head processes at a time. Used by devices that fuse the head,
// and by memory estimates.
#pragma once

#include <algorithm>
#include <cstdint>

#include <titan/ops/chunked_loss.h>

TITAN_OPTIONAL_HEADER(fused_head);

namespace titan::ops {

/// Limit of a fused head's logits at a time, in bytes of their dtype: 2,093 rows of Llama 3's
/// 128,256 in bf16. Products with fewer rows do not reach the full speed of a large GPU.
inline constexpr int64_t kFusedHeadLogitsBytes = int64_t{512} << 20;

/// All rows, if their logits need no more memory than the weight's gradient in fp32, in which
/// several chunks accumulate; a single chunk needs no such memory. Otherwise chunk_rows for
/// kFusedHeadLogitsBytes of logits. x (rows, dim), weight (words, dim). Depends only on shapes and
/// dtype. At least 1.
inline int64_t fused_head_rows(const at::Tensor& x, const at::Tensor& weight) {
  const int64_t rows = x.size(0), bytes = x.element_size();
  const bool is_narrow = x.scalar_type() != at::kFloat;
  constexpr int64_t kFloatBytes = sizeof(float);
  if (is_narrow && rows * bytes <= weight.size(1) * kFloatBytes) return std::max<int64_t>(1, rows);
  return chunk_rows(rows, weight.size(0), kFusedHeadLogitsBytes / bytes * kFloatBytes);
}

}  // namespace titan::ops
