// Rows that a block holds in registers. Each value is read once from global memory, and all reads
// of a thread are in flight at once. Used by the kernels.
#pragma once

#include "pieces.h"

#if TITAN_ON_DEVICE
#define TITAN_UNROLL _Pragma("unroll")
#else
#define TITAN_UNROLL
#endif

namespace titan::cuda {

/// The N numbers of one access as words, so that two 16-bit numbers share a register. In a
/// long-lived Piece the compiler would give each number its own register.
template <class T, int N>
class Held {
 public:
  Held() = default;
  TITAN_DEVICE explicit Held(const grid::Piece<T, N>& piece) {
    __builtin_memcpy(words_, &piece, sizeof(words_));
#if TITAN_ON_DEVICE
    TITAN_UNROLL
    for (uint32_t& word : words_) asm("" : "+r"(word));
#endif
  }
  TITAN_DEVICE float operator[](int k) const {
    if constexpr (sizeof(T) == sizeof(uint32_t)) {
      return float_of(words_[k]);
    } else {
      const uint32_t word = words_[k / 2];
      return widened(T{static_cast<uint16_t>(k % 2 ? word >> 16 : word)});
    }
  }

 private:
  uint32_t words_[N * sizeof(T) / sizeof(uint32_t)];
};

/// Calls use(j, i) for each piece of N elements of this thread; i is its first element. `count`, a
/// multiple of N, is at most N · kThreads · kPieces.
template <int N, int kThreads, int kPieces, class Use>
TITAN_DEVICE void for_each_held(int64_t count, const Use& use) {
  TITAN_UNROLL
  for (int j = 0; j < kPieces; ++j) {
    const int i = N * (j * kThreads + grid::thread());
    if (i < count) use(j, i);
  }
}

/// As for_each_piece, but passes the elements as use(i, values, Width). Reads kAhead pieces before
/// the first is used. `use` may write to these elements only.
template <int N, int kThreads, int kAhead, class T, class Use>
TITAN_DEVICE void for_each_read(const grid::Span<T>& from, int64_t start, const Row& row,
                                const Use& use) {
  constexpr int64_t kStep = int64_t{N} * kThreads;
  using Value = typename grid::Span<T>::Value;
  const int64_t end = row.head + (row.count - row.head) / N * N;
  for (int64_t i = grid::thread(); i < row.head; i += kThreads)
    use(i, from.template piece<1>(start + i), Width<1>{});
  int64_t i = row.head + int64_t{N} * grid::thread();
  for (; i + (kAhead - 1) * kStep < end; i += kAhead * kStep) {
    grid::Piece<Value, N> values[kAhead];
    TITAN_UNROLL
    for (int j = 0; j < kAhead; ++j) values[j] = from.template piece<N>(start + i + j * kStep);
    TITAN_UNROLL
    for (int j = 0; j < kAhead; ++j) use(i + j * kStep, values[j], Width<N>{});
  }
  for (; i < end; i += kStep) use(i, from.template piece<N>(start + i), Width<N>{});
  for (i = end + grid::thread(); i < row.count; i += kThreads)
    use(i, from.template piece<1>(start + i), Width<1>{});
}

/// As over_block, with one barrier. Consecutive calls must alternate `turn` 0, 1, 0 ...; `scratch`
/// has two elements per warp.
template <int kThreads, class T, class Combine>
TITAN_DEVICE T over_block_in_turn(int turn, T value, const grid::Shared<T>& scratch,
                                  const Combine& combine) {
  constexpr int kWarps = kThreads / grid::kWarp;
  value = over_warp(value, combine);
  if (grid::lane() == 0) scratch.store(turn * kWarps + grid::warp(), value);
  grid::sync_block();
  T total = scratch.load(turn * kWarps);
  for (int warp = 1; warp < kWarps; ++warp)
    total = combine(total, scratch.load(turn * kWarps + warp));
  return total;
}

}  // namespace titan::cuda
