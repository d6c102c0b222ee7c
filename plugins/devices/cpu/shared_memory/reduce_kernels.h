// Inner loops of reductions over what several ranks hold.
#pragma once

#include <cstddef>
#include <cstdint>

#include <c10/core/ScalarType.h>
#include <titan/dist/group.h>

namespace titan::cpu {

/// `out[i] = a[i] (op) b[i]` for `count` elements; `out` may be `a` or `b`. As gloo's functions of
/// two: a maximum is that of std::max(a, b), which decides about NaN and the sign of zero, and
/// 16-bit types are added in fp32 and rounded.
using Combine = void (*)(std::byte* out, const std::byte* a, const std::byte* b, size_t count);

/// Null for a type that gloo reduces neither.
Combine combine_function(c10::ScalarType type, dist::Reduce reduce);

/// `out[i]` = the sum of `sources[r][i]` in order of r, 16-bit types in fp32 and rounded once.
using SumInOrder = void (*)(std::byte* out, const std::byte* const* sources, size_t num_sources,
                            size_t count);

/// Null for types that are not summed here.
SumInOrder sum_function(c10::ScalarType type);

/// Cuts a buffer of all ranks as gloo's ring all-reduce does, which decides in which order its
/// elements are added up: those of block b of `size` blocks as x[b] + (x[b+1] + (... + x[b-1])),
/// that is from rank b - 1 downwards.
/// Source: gloo/allreduce.cc, `ring`, with its segments of at most 1 MiB.
struct RingBlocks {
  uint64_t total_bytes;
  uint64_t block_bytes;  // the last blocks may be shorter or empty

  RingBlocks(uint64_t num_elements, uint64_t element_size, int size);

  uint64_t begin(int block) const;
  /// In which byte `offset` < total_bytes lies.
  int block_of(uint64_t offset) const { return static_cast<int>(offset / block_bytes); }
  uint64_t end(int block) const { return begin(block + 1); }
};

}  // namespace titan::cpu
