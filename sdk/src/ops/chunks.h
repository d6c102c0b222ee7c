// How linear_cross_entropy cuts its rows. Used by its CPU and Meta implementations.
#pragma once

#include <algorithm>
#include <cstdint>

namespace titan::ops {

/// Logits that exist at a time, in bytes of fp32; small enough to stay in a cache where the
/// vocabulary allows it.
inline constexpr int64_t kLogitsBytes = int64_t{8} << 20;
/// Fewer rows than this would make the matrix products slow, whatever the vocabulary.
inline constexpr int64_t kMinChunkRows = 128;

/// Rows per chunk, equal but for the last: a function of the shapes alone, so that sums have the
/// same order with any number of threads.
inline int64_t logits_chunk_rows(int64_t num_rows, int64_t vocab_size) {
  const int64_t most = std::max(kMinChunkRows, kLogitsBytes / (4 * vocab_size));
  const int64_t num_chunks = std::max<int64_t>(1, (num_rows + most - 1) / most);
  return (num_rows + num_chunks - 1) / num_chunks;
}

}  // namespace titan::ops
