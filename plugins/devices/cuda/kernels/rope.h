// Rotary positions: element i of the first half of a head and element i of the second are turned by
// the angle of their token. Su et al., 2021, in the layout of Llama's Hugging Face weights.
#pragma once

#include "pieces.h"

namespace titan::cuda {

/// A block per token; q or k, whichever `x` is.
template <class T>
struct RopeRotate {
  static constexpr int kThreads = 128, kBlocks = 8;
  grid::Span<const T> x;  ///< (B, S, heads, hd) with these strides, hd contiguous
  int64_t batch_stride, token_stride, head_stride;
  grid::Span<T> out;                     ///< contiguous
  grid::Span<const float> cosine, sine;  ///< (positions, hd / 2)
  grid::Span<const int64_t> positions;   ///< (B, S), or nothing: 0 ... S - 1
  int64_t tokens, heads, half, num_positions;
  float sign;       ///< -1 turns back
  bool is_aligned;  ///< heads and their halves start at multiples of 16 bytes

  TITAN_DEVICE void operator()() const {
    if (is_aligned)
      rotate(Width<kPerAccess<T>>{});
    else
      rotate(Width<1>{});
  }

 private:
  template <int N>
  TITAN_DEVICE void rotate(Width<N>) const {
    const int64_t token = grid::block();
    const int64_t position = positions.size > 0 ? positions.load(token) : token % tokens;
    grid::require(position >= 0 && position < num_positions,
                  "rope: a position is outside of the table");
    const int64_t from = token / tokens * batch_stride + token % tokens * token_stride;
    const int64_t to = token * heads * 2 * half;
    const int64_t pieces = half / N;
    for (int64_t i = grid::thread(); i < heads * pieces; i += kThreads) {
      const int64_t head = i / pieces, column = i % pieces * N;
      auto a = x.template piece<N>(from + head * head_stride + column);
      auto b = x.template piece<N>(from + head * head_stride + half + column);
      const auto c = cosine.template piece<N>(position * half + column);
      const auto s = sine.template piece<N>(position * half + column);
      for (int k = 0; k < N; ++k) {
        const float first = widened(a[k]), second = widened(b[k]), turn = sign * s[k];
        a[k] = rounded<T>(first * c[k] - second * turn);
        b[k] = rounded<T>(second * c[k] + first * turn);
      }
      out.template put<N>(to + head * 2 * half + column, a);
      out.template put<N>(to + head * 2 * half + half + column, b);
    }
  }
};

}  // namespace titan::cuda
