// Kernel: rotary positions. Rotates element i of the first half of a head and element i of the
// second by the angle of their token. Su et al., 2021, in the layout of Llama's Hugging Face
// weights.
#pragma once

#include "pieces.h"

namespace titan::cuda {

/// One thread per pair of pieces, one from the first half and its counterpart from the second; x is
/// q or k. `out` may be x itself.
template <class T>
struct RopeRotate {
  static constexpr int kThreads = 128, kBlocks = 8;
  grid::Span<const T> x;  ///< (B, S, heads, hd) with these strides, hd contiguous
  int64_t batch_stride, token_stride, head_stride;
  grid::Span<T> out;  ///< with these strides, heads contiguous
  int64_t out_batch_stride, out_token_stride;
  grid::Span<const float> cosine, sine;  ///< (positions, hd / 2)
  grid::Span<const int64_t> positions;   ///< (B, S); empty: 0 ... S - 1
  int64_t num_positions;
  uint32_t num_pieces, heads, tokens, half;  ///< pieces of all of x; tokens: S
  float sign;                                ///< -1: inverse rotation
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
    const int64_t number = grid::block() * kThreads + grid::thread();
    if (number >= num_pieces) return;
    // 32-bit divisions: a 64-bit one takes a hundred instructions
    const uint32_t piece = static_cast<uint32_t>(number), pieces = half / N;
    const uint32_t row = piece / pieces, column = piece % pieces * N;
    const uint32_t token = row / heads, head = row % heads;
    const uint32_t batch = token / tokens, place = token % tokens;
    const int64_t position = positions.size > 0 ? positions.load(token) : int64_t{place};
    grid::require(position >= 0 && position < num_positions,
                  "rope: a position is outside of the table");
    const int64_t from = batch * batch_stride + place * token_stride + head * head_stride + column;
    const int64_t to =
        batch * out_batch_stride + place * out_token_stride + int64_t{head} * 2 * half + column;
    auto a = x.template piece<N>(from);
    auto b = x.template piece<N>(from + half);
    const auto c = cosine.template piece<N>(position * half + column);
    const auto s = sine.template piece<N>(position * half + column);
    for (int k = 0; k < N; ++k) {
      const float first = widened(a[k]), second = widened(b[k]), turn = sign * s[k];
      a[k] = rounded<T>(first * c[k] - second * turn);
      b[k] = rounded<T>(second * c[k] + first * turn);
    }
    out.template put<N>(to, a);
    out.template put<N>(to + half, b);
  }
};

}  // namespace titan::cuda
