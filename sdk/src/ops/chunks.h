// How linear_cross_entropy cuts its rows on the CPU. Used by its CPU and Meta implementations.
#pragma once

#include <cstdint>

#include <titan/ops/chunked_loss.h>

namespace titan::ops {

/// Logits that exist at a time, in bytes of fp32; small enough to stay in a cache where the
/// vocabulary allows it.
inline constexpr int64_t kLogitsBytes = int64_t{8} << 20;

inline int64_t logits_chunk_rows(int64_t num_rows, int64_t vocab_size) {
  return chunk_rows(num_rows, vocab_size, kLogitsBytes);
}

}  // namespace titan::ops
