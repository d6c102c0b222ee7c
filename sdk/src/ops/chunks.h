// The chunk size of linear_cross_entropy on the CPU. Used by its CPU and Meta implementations.
#pragma once

#include <cstdint>

#include <titan/ops/chunked_loss.h>

namespace titan::ops {

/// Bytes of fp32 logits in memory at a time; small enough for a cache if the vocabulary allows it.
inline constexpr int64_t kLogitsBytes = int64_t{8} << 20;

inline int64_t logits_chunk_rows(int64_t num_rows, int64_t vocab_size) {
  return chunk_rows(num_rows, vocab_size, kLogitsBytes);
}

}  // namespace titan::ops
