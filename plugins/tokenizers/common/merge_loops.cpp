#include "merge_loops.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace titan::bpe {

void merge_by_scan(const MergeTable& merges, std::vector<int32_t>& ids) {
  size_t n = ids.size();
  uint32_t ranks[kMaxScan];  // of symbol i with its right neighbour
  int32_t merged[kMaxScan];  // and the id of the merged pair
  const auto look_up = [&](size_t i) {
    const Merge merge = i + 1 < n ? merges.find(ids[i], ids[i + 1]) : Merge{};
    ranks[i] = merge.rank;
    merged[i] = merge.id;
  };
  for (size_t i = 0; i < n; ++i) look_up(i);
  while (n > 1) {
    const size_t best = static_cast<size_t>(std::min_element(ranks, ranks + n - 1) - ranks);
    if (ranks[best] == Merge::kNone) break;
    ids[best] = merged[best];
    std::move(ids.begin() + static_cast<std::ptrdiff_t>(best) + 2,
              ids.begin() + static_cast<std::ptrdiff_t>(n),
              ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    std::move(ranks + best + 2, ranks + n, ranks + best + 1);
    std::move(merged + best + 2, merged + n, merged + best + 1);
    --n;
    look_up(best);
    if (best > 0) look_up(best - 1);
  }
  ids.resize(n);
}

// A linked list of symbols and a heap of (rank, position). An entry is stale if the rank of its
// position has changed.
void merge_by_heap(const MergeTable& merges, std::vector<int32_t>& ids, HeapBuffers buffers) {
  constexpr uint32_t kEnd = std::numeric_limits<uint32_t>::max();
  auto& [ranks, previous, next, heap] = buffers;
  const uint32_t n = static_cast<uint32_t>(ids.size());
  ranks.assign(n, Merge::kNone);
  previous.resize(n);
  next.resize(n);
  heap.clear();
  for (uint32_t i = 0; i < n; ++i) {
    previous[i] = i == 0 ? kEnd : i - 1;
    next[i] = i + 1 == n ? kEnd : i + 1;
    if (next[i] == kEnd) continue;
    ranks[i] = merges.find(ids[i], ids[i + 1]).rank;
    if (ranks[i] != Merge::kNone) heap.push_back(uint64_t{ranks[i]} << 32 | i);
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto update = [&](uint32_t i) {
    ranks[i] = next[i] == kEnd ? Merge::kNone : merges.find(ids[i], ids[next[i]]).rank;
    if (ranks[i] == Merge::kNone) return;
    heap.push_back(uint64_t{ranks[i]} << 32 | i);
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const auto i = static_cast<uint32_t>(heap.back());
    const auto rank = static_cast<uint32_t>(heap.back() >> 32);
    heap.pop_back();
    if (ranks[i] != rank) continue;
    const uint32_t right = next[i];
    ids[i] = merges.find(ids[i], ids[right]).id;
    next[i] = next[right];
    if (next[i] != kEnd) previous[next[i]] = i;
    ranks[right] = Merge::kNone;
    update(i);
    if (previous[i] != kEnd) update(previous[i]);
  }
  size_t kept = 0;
  for (uint32_t i = 0; i != kEnd; i = next[i]) ids[kept++] = ids[i];
  ids.resize(kept);
}

}  // namespace titan::bpe
