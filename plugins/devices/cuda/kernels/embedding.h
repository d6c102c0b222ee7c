// Kernel: the gradient of an embedding without atomics, deterministic and bitwise equal to the
// CPU's.
#pragma once

#include "pieces.h"

namespace titan::cuda {

/// `sorted`: the tokens, sorted stably; `order`: their original positions. A block handles a tile
/// of columns of one sorted position. It does nothing unless that is the first of its table row;
/// then it adds the gradients of all positions of the row in order.
template <class T>
struct EmbeddingBackward {
  static constexpr int kThreads = 128, kBlocks = 8;
  grid::Span<const T> dout;  ///< (tokens, dim)
  grid::Span<const int64_t> sorted, order;
  grid::Span<T> dweight;  ///< (num_rows, dim), zero
  int64_t tokens, dim, num_rows, tiles_per_row;
  bool is_aligned;

  TITAN_DEVICE void operator()() const {
    if (is_aligned)
      add(Width<kPerAccess<T>>{});
    else
      add(Width<1>{});
  }
  /// Columns of a tile.
  static constexpr int64_t columns(bool is_aligned) {
    return kThreads * (is_aligned ? kPerAccess<T> : 1);
  }

 private:
  template <int N>
  TITAN_DEVICE void add(Width<N>) const {
    const int64_t first = grid::block() / tiles_per_row;
    const int64_t row = sorted.load(first);
    grid::require(row >= 0 && row < num_rows, "embedding: a token is outside of the table");
    if (first > 0 && sorted.load(first - 1) == row) return;
    const int64_t column = grid::block() % tiles_per_row * N * kThreads + N * grid::thread();
    if (column >= dim) return;
    float sum[N] = {};
    for (int64_t i = first; i < tokens && sorted.load(i) == row; ++i) {
      const auto share = dout.template piece<N>(order.load(i) * dim + column);
      for (int k = 0; k < N; ++k) sum[k] += widened(share[k]);
    }
    grid::Piece<T, N> out;
    for (int k = 0; k < N; ++k) out[k] = rounded<T>(sum[k]);
    dweight.template put<N>(row * dim + column, out);
  }
};

}  // namespace titan::cuda
