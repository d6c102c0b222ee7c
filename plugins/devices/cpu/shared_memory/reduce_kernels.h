// Inner loops of reductions over the buffers of several ranks. Used by the shared memory backend.
#pragma once

#include <cstddef>
#include <cstdint>

#include <c10/core/ScalarType.h>
#include <titan/dist/group.h>

namespace titan::cpu {

/// `out[i] = a[i] (op) b[i]` for `count` elements; `out` may be `a` or `b`. Bitwise equal to gloo's
/// functions of two operands: a maximum is std::max(a, b), also for NaN and the sign of zero, and
/// 16-bit types are added in fp32 and rounded.
using Combine = void (*)(std::byte* out, const std::byte* a, const std::byte* b, size_t count);

/// Null for a dtype that gloo does not reduce either.
Combine combine_function(c10::ScalarType type, dist::Reduce reduce);

/// `out[i]` = the sum of `sources[r][i]` in order of r. 16-bit types: in fp32, rounded once.
using SumInOrder = void (*)(std::byte* out, const std::byte* const* sources, size_t num_sources,
                            size_t count);

/// Null for dtypes without such a function.
SumInOrder sum_function(c10::ScalarType type);

/// Splits a buffer of all ranks as gloo's ring all-reduce does. The split determines the order of
/// addition: elements of block b of `size` blocks are summed as x[b] + (x[b+1] + (... + x[b-1])),
/// that is from rank b - 1 downwards. Source: gloo/allreduce.cc, `ring`, with its segments of at
/// most 1 MiB.
struct RingBlocks {
  uint64_t total_bytes;
  uint64_t block_bytes;  // the last blocks may be shorter or empty

  RingBlocks(uint64_t num_elements, uint64_t element_size, int size);

  uint64_t begin(int block) const;
  /// The block that holds byte `offset` < total_bytes.
  int block_of(uint64_t offset) const { return static_cast<int>(offset / block_bytes); }
  uint64_t end(int block) const { return begin(block + 1); }
};

}  // namespace titan::cpu
