// Distributes a row over the threads of a block, in aligned accesses of 16 bytes and single
// elements before and after them; reductions over a block in a fixed order. Used by the kernels.
#pragma once

#include "numbers.h"

namespace titan::cuda {

template <int N>
struct Width {
  static constexpr int value = N;
};

/// Elements of T in one access.
template <class T>
inline constexpr int kPerAccess = grid::kAccess / static_cast<int>(sizeof(T));

/// Split of a row: elements [0, head) and the tail one by one, the rest in pieces of N. The thread
/// of an element depends on these numbers and N only.
struct Row {
  int64_t count;  ///< elements
  int64_t head;   ///< elements before the first aligned one; `count` if nothing is aligned
};

/// For elements `start` ... `start` + `count` - 1 of an array whose start is aligned.
template <int N>
TITAN_DEVICE Row row_at(int64_t start, int64_t count) {
  const int64_t head = (N - start % N) % N;
  return {count, head < count ? head : count};
}

/// Calls use(i, Width<N>) or use(i, Width<1>) for this thread's elements of the row.
template <int N, int kThreads, class Use>
TITAN_DEVICE void for_each_piece(const Row& row, const Use& use) {
  const int64_t whole = (row.count - row.head) / N * N;
  for (int64_t i = grid::thread(); i < row.head; i += kThreads) use(i, Width<1>{});
  for (int64_t i = row.head + int64_t{N} * grid::thread(); i < row.head + whole;
       i += int64_t{N} * kThreads)
    use(i, Width<N>{});
  for (int64_t i = row.head + whole + grid::thread(); i < row.count; i += kThreads)
    use(i, Width<1>{});
}

/// `combine` of all lanes' values, the same on every lane: pairs at distance 16, 8 ... 1.
template <class T, class Combine>
TITAN_DEVICE T over_warp(T value, const Combine& combine) {
  for (int mask = grid::kWarp / 2; mask > 0; mask /= 2)
    value = combine(value, grid::shuffle_xor(value, mask));
  return value;
}

/// `combine`, which must be symmetric, of all threads' values: lanes first, then warps in order.
/// The result is the same on every thread and in every run. `scratch`: one element per warp, free
/// again on return.
template <int kThreads, class T, class Combine>
TITAN_DEVICE T over_block(T value, const grid::Shared<T>& scratch, const Combine& combine) {
  value = over_warp(value, combine);
  if (grid::lane() == 0) scratch.store(grid::warp(), value);
  grid::sync_block();
  T total = scratch.load(0);
  for (int warp = 1; warp < kThreads / grid::kWarp; ++warp)
    total = combine(total, scratch.load(warp));
  grid::sync_block();
  return total;
}

struct Add {
  TITAN_DEVICE float operator()(float a, float b) const { return a + b; }
};

/// NaN wins, as in ATen's amax.
struct Largest {
  TITAN_DEVICE float operator()(float a, float b) const { return a > b || a != a ? a : b; }
};

}  // namespace titan::cuda
