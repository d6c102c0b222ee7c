// Float8 of a matrix with the scale that its largest absolute value asks for. Micikevicius et al.,
// "FP8 formats for deep learning", 2022; scales as torchao computes them.
#pragma once

#include "pieces.h"

namespace titan::cuda {

/// As titan::float8::scale_of: in double, from a maximum that is not below 1e-12.
template <class Format>
TITAN_DEVICE float float8_scale(float largest, bool to_power_of_two) {
  const double bounded = largest < 1e-12 ? 1e-12 : static_cast<double>(largest);
  const float scale = static_cast<float>(static_cast<double>(Format::kLargest) / bounded);
  if (!to_power_of_two || !is_finite(scale)) return scale;
  return float_of(bits_of(scale) & 0xff800000u);
}

TITAN_DEVICE float magnitude(float value) {
  return float_of(bits_of(value) & 0x7fffffffu);
}

/// The largest absolute value of each block's share of x.
template <class T>
struct LargestOfBlocks {
  static constexpr int kThreads = 256, kBlocks = 4;
  grid::Span<const T> x;
  grid::Span<float> largest;  ///< (blocks)
  int64_t per_block;          ///< elements, a multiple of one access

  TITAN_DEVICE void operator()() const {
    constexpr int N = kPerAccess<T>;
    TITAN_SHARED(float, scratch, kThreads / grid::kWarp);
    const int64_t first = grid::block() * per_block;
    const int64_t left = x.size - first;
    const int64_t count = left < per_block ? left : per_block;
    float own = 0;
    for_each_piece<N, kThreads>({count, 0}, [&](int64_t i, auto width) {
      constexpr int M = decltype(width)::value;
      const auto values = x.template piece<M>(first + i);
      for (int k = 0; k < M; ++k) own = Largest{}(own, magnitude(widened(values[k])));
    });
    own = over_block<kThreads>(own, scratch, Largest{});
    if (grid::thread() == 0) largest.store(grid::block(), own);
  }
};

/// x · scale rounded to Format, with one scale for all of x. Every block computes it from what
/// LargestOfBlocks left.
template <class T, class Format>
struct QuantizeTensor {
  static constexpr int kThreads = 256, kBlocks = 4;
  grid::Span<const T> x;
  grid::Span<const float> largest;
  grid::Span<Format> values;
  grid::Span<float> scale;  ///< (1)
  int64_t per_block;
  bool to_power_of_two;

  TITAN_DEVICE void operator()() const {
    constexpr int N = kPerAccess<T>;
    TITAN_SHARED(float, scratch, kThreads / grid::kWarp);
    float most = 0;
    for (int64_t i = grid::thread(); i < largest.size; i += kThreads)
      most = Largest{}(most, largest.load(i));
    most = over_block<kThreads>(most, scratch, Largest{});
    const float factor = float8_scale<Format>(most, to_power_of_two);
    if (grid::block() == 0 && grid::thread() == 0) scale.store(0, factor);
    const int64_t first = grid::block() * per_block;
    const int64_t left = x.size - first;
    for_each_piece<N, kThreads>({left < per_block ? left : per_block, 0},
                                [&](int64_t i, auto width) {
                                  constexpr int M = decltype(width)::value;
                                  const auto in = x.template piece<M>(first + i);
                                  grid::Piece<Format, M> out;
                                  for (int k = 0; k < M; ++k)
                                    out[k] = rounded<Format>(widened(in[k]) * factor);
                                  values.template put<M>(first + i, out);
                                });
  }
};

/// The same with a scale for each row. A block per row.
template <class T, class Format>
struct QuantizeRows {
  static constexpr int kThreads = 256, kBlocks = 4;
  grid::Span<const T> x;  ///< (rows, columns)
  grid::Span<Format> values;
  grid::Span<float> scale;  ///< (rows)
  int64_t columns;
  bool is_aligned, to_power_of_two;

  TITAN_DEVICE void operator()() const {
    constexpr int N = kPerAccess<T>;
    TITAN_SHARED(float, scratch, kThreads / grid::kWarp);
    const int64_t start = grid::block() * columns;
    const Row row{columns, is_aligned ? 0 : columns};
    float most = 0;
    for_each_piece<N, kThreads>(row, [&](int64_t i, auto width) {
      constexpr int M = decltype(width)::value;
      const auto in = x.template piece<M>(start + i);
      for (int k = 0; k < M; ++k) most = Largest{}(most, magnitude(widened(in[k])));
    });
    most = over_block<kThreads>(most, scratch, Largest{});
    const float factor = float8_scale<Format>(most, to_power_of_two);
    if (grid::thread() == 0) scale.store(grid::block(), factor);
    for_each_piece<N, kThreads>(row, [&](int64_t i, auto width) {
      constexpr int M = decltype(width)::value;
      const auto in = x.template piece<M>(start + i);
      grid::Piece<Format, M> out;
      for (int k = 0; k < M; ++k) out[k] = rounded<Format>(widened(in[k]) * factor);
      values.template put<M>(start + i, out);
    });
  }
};

}  // namespace titan::cuda
