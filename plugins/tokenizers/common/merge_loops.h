// The two loops of byte-pair encoding: for a word and for a long text. Used by IdWriter only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "merge_table.h"

namespace titan::bpe {

/// Up to this many symbols, scanning all ranks each time is faster than a heap.
inline constexpr size_t kMaxScan = 64;

struct HeapBuffers {
  std::vector<uint32_t>& ranks;
  std::vector<uint32_t>& previous;
  std::vector<uint32_t>& next;
  std::vector<uint64_t>& heap;
};

/// Merges `ids` (at most kMaxScan) in place until no pair has a merge.
void merge_by_scan(const MergeTable& merges, std::vector<int32_t>& ids);
/// The same for any number of ids (less than 2^32) in n log n steps.
void merge_by_heap(const MergeTable& merges, std::vector<int32_t>& ids, HeapBuffers buffers);

}  // namespace titan::bpe
