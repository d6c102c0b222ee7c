// Kernels: silu(gate) · up with silu(g) = g / (1 + e^-g). Shazeer, 2020.
#pragma once

#include "pieces.h"

namespace titan::cuda {

/// Tiling of matrices whose rows may be apart, as in the halves of a packed product.
struct Tiles {
  int64_t rows, columns, tiles_per_row;
  bool is_aligned;  ///< every row of every matrix starts at a multiple of 16 bytes
};

/// Calls use(row, column, Width) for this thread's part of the block's tile, which is `kThreads`
/// accesses of T wide.
template <class T, int kThreads, class Use>
TITAN_DEVICE void for_each_of_tile(const Tiles& tiles, const Use& use) {
  constexpr int N = kPerAccess<T>;
  const int64_t row = grid::block() / tiles.tiles_per_row;
  const int64_t first = grid::block() % tiles.tiles_per_row * N * kThreads;
  const int64_t left = tiles.columns - first;
  const int64_t count = left < int64_t{N} * kThreads ? left : int64_t{N} * kThreads;
  for_each_piece<N, kThreads>({count, tiles.is_aligned ? 0 : count},
                              [&](int64_t i, auto width) { use(row, first + i, width); });
}

template <class T>
struct SwigluForward {
  static constexpr int kThreads = 256, kBlocks = 4;
  grid::Span<const T> gate, up;
  grid::Span<T> out;
  int64_t gate_stride, up_stride;  ///< between rows
  Tiles tiles;

  TITAN_DEVICE void operator()() const {
    for_each_of_tile<T, kThreads>(tiles, [&](int64_t row, int64_t column, auto width) {
      constexpr int M = decltype(width)::value;
      auto g = gate.template piece<M>(row * gate_stride + column);
      const auto u = up.template piece<M>(row * up_stride + column);
      for (int k = 0; k < M; ++k) {
        const float x = widened(g[k]);
        g[k] = rounded<T>(x / (1.0f + expf(-x)) * widened(u[k]));
      }
      out.template put<M>(row * tiles.columns + column, g);
    });
  }
};

/// The gradients of gate and up, and silu(gate) · up unless `product` is empty. Results may
/// overwrite dout, gate and up.
template <class T>
struct SwigluBackward {
  static constexpr int kThreads = 256, kBlocks = 4;
  grid::Span<const T> dout, gate, up;
  grid::Span<T> dgate, dup, product;  ///< contiguous; product may be empty
  int64_t dout_stride, gate_stride, up_stride;
  Tiles tiles;

  TITAN_DEVICE void operator()() const {
    for_each_of_tile<T, kThreads>(tiles, [&](int64_t row, int64_t column, auto width) {
      constexpr int M = decltype(width)::value;
      auto d = dout.template piece<M>(row * dout_stride + column);
      auto g = gate.template piece<M>(row * gate_stride + column);
      const auto u = up.template piece<M>(row * up_stride + column);
      if (product.size > 0) {
        grid::Piece<T, M> out;
        for (int k = 0; k < M; ++k) {
          const float x = widened(g[k]);
          out[k] = rounded<T>(x / (1.0f + expf(-x)) * widened(u[k]));
        }
        product.template put<M>(row * tiles.columns + column, out);
      }
      for (int k = 0; k < M; ++k) {
        const float x = widened(g[k]), grad = widened(d[k]);
        const float s = 1.0f / (1.0f + expf(-x));
        g[k] = rounded<T>(grad * widened(u[k]) * s * (1.0f + x * (1.0f - s)));
        d[k] = rounded<T>(grad * (x * s));
      }
      dgate.template put<M>(row * tiles.columns + column, g);
      dup.template put<M>(row * tiles.columns + column, d);
    });
  }
};

}  // namespace titan::cuda
