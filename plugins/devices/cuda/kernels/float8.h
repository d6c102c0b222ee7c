// Kernels that quantize a matrix to float8 with a scale from its largest absolute value.
// Micikevicius et al., "FP8 formats for deep learning", 2022; scales as in torchao.
#pragma once

#include "held_row.h"

namespace titan::cuda {

/// As titan::float8::scale_of: in double, with a maximum of at least 1e-12.
template <class Format>
TITAN_DEVICE float float8_scale(float largest, bool to_power_of_two) {
  const double bounded = largest < 1e-12 ? 1e-12 : static_cast<double>(largest);
  const float scale = static_cast<float>(static_cast<double>(Format::kLargest) / bounded);
  if (!to_power_of_two || !is_finite(scale)) return scale;
  return float_of(bits_of(scale) & 0xff800000u);
}

/// Two numbers rounded to Format, the first in the lower byte. Uses one instruction on GPUs that
/// have it (compute capability 8.9), with the same bits.
template <class Format>
TITAN_DEVICE uint16_t rounded_pair(float first, float second) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  uint16_t pair;
  if constexpr (Format::kMantissa == 3)
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
  else
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
  return pair;
#else
  return static_cast<uint16_t>(rounded<Format>(first).bits | rounded<Format>(second).bits << 8);
#endif
}

/// in · factor rounded to Format.
template <class Format, class T, int N>
TITAN_DEVICE grid::Piece<Format, N> quantized(const grid::Piece<T, N>& in, float factor) {
  grid::Piece<Format, N> out;
  if constexpr (N == 1) {
    out[0] = rounded<Format>(widened(in[0]) * factor);
  } else {
    uint16_t pairs[N / 2];
    for (int k = 0; k < N; k += 2)
      pairs[k / 2] = rounded_pair<Format>(widened(in[k]) * factor, widened(in[k + 1]) * factor);
    __builtin_memcpy(&out, pairs, sizeof(out));
  }
  return out;
}

/// The bits of magnitudes have the same order as the magnitudes; NaN is the largest.
TITAN_DEVICE uint32_t magnitude(float value) {
  return bits_of(value) & 0x7fffffffu;
}
struct LargestBits {
  TITAN_DEVICE uint32_t operator()(uint32_t a, uint32_t b) const { return a > b ? a : b; }
};

template <class T, int N>
TITAN_DEVICE uint32_t largest_magnitude(uint32_t most, const grid::Piece<T, N>& in) {
  for (int k = 0; k < N; ++k) most = LargestBits{}(most, magnitude(widened(in[k])));
  return most;
}

/// The maximum of the results of LargestOfBlocks, on every thread.
template <int kThreads>
TITAN_DEVICE float largest_of(const grid::Span<const float>& largest,
                              const grid::Shared<uint32_t>& scratch) {
  uint32_t most = 0;
  for (int64_t i = grid::thread(); i < largest.size; i += kThreads)
    most = LargestBits{}(most, magnitude(largest.load(i)));
  return float_of(over_block<kThreads>(most, scratch, LargestBits{}));
}

/// The largest absolute value of each block's part of x.
template <class T>
struct LargestOfBlocks {
  static constexpr int kThreads = 256, kBlocks = 4;
  grid::Span<const T> x;
  grid::Span<float> largest;  ///< (blocks)
  int64_t per_block;          ///< elements, a multiple of one access

  TITAN_DEVICE void operator()() const {
    constexpr int N = kPerAccess<T>;
    TITAN_SHARED(uint32_t, scratch, kThreads / grid::kWarp);
    const int64_t first = grid::block() * per_block;
    const int64_t left = x.size - first;
    const int64_t count = left < per_block ? left : per_block;
    uint32_t own = 0;
    for_each_read<N, kThreads, 4>(x, first, {count, 0}, [&](int64_t, const auto& in, auto) {
      own = largest_magnitude(own, in);
    });
    own = over_block<kThreads>(own, scratch, LargestBits{});
    if (grid::thread() == 0) largest.store(grid::block(), float_of(own));
  }
};

/// x · scale rounded to Format, with one scale for all of x. Every block computes the scale from
/// the results of LargestOfBlocks, or reads it if it is known.
template <class T, class Format>
struct QuantizeTensor {
  static constexpr int kThreads = 256, kBlocks = 4;
  grid::Span<const T> x;
  grid::Span<const float> largest;  ///< empty: `scale` is read
  grid::Span<Format> values;
  grid::Span<float> scale;  ///< (1)
  int64_t per_block;
  bool to_power_of_two;

  TITAN_DEVICE void operator()() const {
    constexpr int N = kPerAccess<T>;
    TITAN_SHARED(uint32_t, scratch, kThreads / grid::kWarp);
    float factor;
    if (largest.size > 0) {
      factor = float8_scale<Format>(largest_of<kThreads>(largest, scratch), to_power_of_two);
      if (grid::block() == 0 && grid::thread() == 0) scale.store(0, factor);
    } else {
      factor = scale.load(0);
    }
    const int64_t first = grid::block() * per_block;
    const int64_t left = x.size - first;
    for_each_read<N, kThreads, 4>(x, first, {left < per_block ? left : per_block, 0},
                                  [&](int64_t i, const auto& in, auto) {
                                    values.put(first + i, quantized<Format>(in, factor));
                                  });
  }
};

/// As QuantizeTensor with a scale for each row. One block per row.
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
    TITAN_SHARED(uint32_t, scratch, kThreads / grid::kWarp);
    const int64_t start = grid::block() * columns;
    const Row row{columns, is_aligned ? 0 : columns};
    uint32_t most = 0;
    for_each_read<N, kThreads, 2>(
        x, start, row, [&](int64_t, const auto& in, auto) { most = largest_magnitude(most, in); });
    most = over_block<kThreads>(most, scratch, LargestBits{});
    const float factor = float8_scale<Format>(float_of(most), to_power_of_two);
    if (grid::thread() == 0) scale.store(grid::block(), factor);
    for_each_read<N, kThreads, 2>(x, start, row, [&](int64_t i, const auto& in, auto) {
      values.put(start + i, quantized<Format>(in, factor));
    });
  }
};

/// The largest absolute values of the columns in each strip of `kTall` rows. A warp reads one row
/// of a block's columns at a time.
template <class T>
struct LargestOfColumns {
  static constexpr int kThreads = 256, kBlocks = 4;
  static constexpr int kTall = 128,
                       kWide = grid::kWarp * kPerAccess<T>;  ///< rows, columns of a block
  grid::Span<const T> x;                                     ///< (rows, columns)
  grid::Span<float> largest;                                 ///< (rows / kTall, columns)
  int64_t rows, columns, column_blocks;
  bool is_aligned;

  TITAN_DEVICE void operator()() const {
    constexpr int N = kPerAccess<T>, kWarps = kThreads / grid::kWarp;
    TITAN_SHARED(uint32_t, scratch, kWarps * kWide);
    const int64_t strip = grid::block() / column_blocks;
    const int64_t first = grid::block() % column_blocks * kWide;
    const int64_t column = first + grid::lane() * N;
    const int64_t begin = strip * kTall + grid::warp();
    const int64_t end = (strip + 1) * kTall < rows ? (strip + 1) * kTall : rows;
    uint32_t most[N] = {};
    if (is_aligned && column < columns) {
      int64_t row = begin;
      for (; row + 3 * kWarps < end; row += 4 * kWarps) {
        grid::Piece<T, N> in[4];
        for (int r = 0; r < 4; ++r)
          in[r] = x.template piece<N>((row + r * kWarps) * columns + column);
        for (int r = 0; r < 4; ++r) take(most, in[r]);
      }
      for (; row < end; row += kWarps) take(most, x.template piece<N>(row * columns + column));
    } else {
      for (int64_t row = begin; row < end; row += kWarps)
        for (int k = 0; k < N; ++k)
          if (column + k < columns)
            most[k] =
                LargestBits{}(most[k], magnitude(widened(x.load(row * columns + column + k))));
    }
    for (int k = 0; k < N; ++k) scratch.store(grid::warp() * kWide + grid::lane() * N + k, most[k]);
    grid::sync_block();
    const int own = grid::thread();
    if (own >= kWide || first + own >= columns) return;
    uint32_t all = 0;
    for (int warp = 0; warp < kWarps; ++warp)
      all = LargestBits{}(all, scratch.load(warp * kWide + own));
    largest.store(strip * columns + first + own, float_of(all));
  }

 private:
  template <int N>
  TITAN_DEVICE static void take(uint32_t (&most)[N], const grid::Piece<T, N>& in) {
    for (int k = 0; k < N; ++k) most[k] = LargestBits{}(most[k], magnitude(widened(in[k])));
  }
};

/// A scale for each column, from the results of LargestOfColumns. One lane per column; the warps
/// share the strips.
template <class Format>
struct ScaleOfColumns {
  static constexpr int kThreads = 256, kBlocks = 4;
  grid::Span<const float> largest;  ///< (strips, columns)
  grid::Span<float> scale;          ///< (columns)
  int64_t strips, columns;
  bool to_power_of_two;

  TITAN_DEVICE void operator()() const {
    constexpr int kWarps = kThreads / grid::kWarp;
    TITAN_SHARED(uint32_t, scratch, kThreads);
    const int64_t column = grid::block() * grid::kWarp + grid::lane();
    uint32_t most = 0;
    if (column < columns)
      for (int64_t strip = grid::warp(); strip < strips; strip += kWarps)
        most = LargestBits{}(most, magnitude(largest.load(strip * columns + column)));
    scratch.store(grid::thread(), most);
    grid::sync_block();
    if (grid::warp() > 0 || column >= columns) return;
    for (int warp = 1; warp < kWarps; ++warp)
      most = LargestBits{}(most, scratch.load(warp * grid::kWarp + grid::lane()));
    scale.store(column, float8_scale<Format>(float_of(most), to_power_of_two));
  }
};

/// The transpose of x · scale rounded to Format, with one scale for all of x or one per column. A
/// block transposes a square of x in shared memory. A thread reads kWide columns of kTall rows, so
/// that a warp reads whole rows; it stores kTall neighbours of the transpose.
template <class T, class Format>
struct QuantizeTurned {
  static constexpr int kThreads = 256, kBlocks = 3;
  static constexpr int kSide = 128, kWide = kSide / grid::kWarp, kTall = grid::kAccess;
  static constexpr int kStrips = kSide / kTall;
  static_assert(kStrips * grid::kWarp == kThreads && sizeof(Format) == 1);
  using Strip = grid::Piece<Format, kTall>;
  grid::Span<const T> x;            ///< (rows, columns)
  grid::Span<const float> largest;  ///< of LargestOfBlocks; empty: `scale` is read
  grid::Span<Format> values;        ///< (columns, rows)
  grid::Span<float> scale;          ///< (1), or (columns)
  int64_t rows, columns, column_blocks;
  bool is_aligned, has_scale_of_columns, to_power_of_two;

  TITAN_DEVICE void operator()() const {
    TITAN_SHARED(Strip, square, kSide * kStrips);
    TITAN_SHARED(uint32_t, scratch, kThreads / grid::kWarp);
    float whole = 1;
    if (largest.size > 0) {
      whole = float8_scale<Format>(largest_of<kThreads>(largest, scratch), to_power_of_two);
      if (grid::block() == 0 && grid::thread() == 0) scale.store(0, whole);
    } else if (!has_scale_of_columns) {
      whole = scale.load(0);
    }
    const int64_t first_row = grid::block() / column_blocks * kSide;
    const int64_t first_column = grid::block() % column_blocks * kSide;
    const int64_t row = first_row + grid::warp() * kTall;
    const int64_t column = first_column + grid::lane() * kWide;
    if (!is_whole(row))
      turn_each(row, column, whole);
    else if (column < columns)
      turn_strips(row, column, whole, square);
    grid::sync_block();

    for (int i = grid::thread(); i < kSide * kStrips; i += kThreads) {
      const int c = i / kStrips, strip = i % kStrips;
      const int64_t to_column = first_row + strip * kTall, to_row = first_column + c;
      if (to_row >= columns || !is_whole(to_column)) continue;
      const Strip out = square.load(place(c, strip));
      if (rows % kTall == 0) {
        values.template put<kTall>(to_row * rows + to_column, out);
      } else {
        for (int r = 0; r < kTall; ++r) values.store(to_row * rows + to_column + r, out[r]);
      }
    }
  }

 private:
  /// Whether the strips that begin in this row are transposed in shared memory.
  TITAN_DEVICE bool is_whole(int64_t row) const { return is_aligned && row + kTall <= rows; }

  /// Index in `square` such that neighbouring lanes access strips in different banks.
  TITAN_DEVICE static int place(int column, int strip) {
    return column * kStrips + (strip ^ column / kWide % kStrips);
  }

  TITAN_DEVICE float factor_of(int64_t column, float whole) const {
    return has_scale_of_columns ? scale.load(column) : whole;
  }

  TITAN_DEVICE void turn_strips(int64_t row, int64_t column, float whole,
                                const grid::Shared<Strip>& square) const {
    constexpr int kWords = kTall / 4;
    float factors[kWide];
    for (int c = 0; c < kWide; ++c) factors[c] = factor_of(column + c, whole);
    uint32_t words[kWide][kWords];
#if TITAN_ON_DEVICE
#pragma unroll  // words stay in registers
#endif
    for (int word = 0; word < kWords; ++word) {
      grid::Piece<T, kWide> in[4];
      for (int r = 0; r < 4; ++r)
        in[r] = x.template piece<kWide>((row + word * 4 + r) * columns + column);
      for (int c = 0; c < kWide; ++c) {
        const auto pair = [&](int r) -> uint32_t {
          return rounded_pair<Format>(widened(in[r][c]) * factors[c],
                                      widened(in[r + 1][c]) * factors[c]);
        };
        words[c][word] = pair(0) | pair(2) << 16;
      }
    }
    for (int c = 0; c < kWide; ++c) {
      Strip strip;
      __builtin_memcpy(&strip, words[c], sizeof(strip));
      square.store(place(grid::lane() * kWide + c, grid::warp()), strip);
    }
  }

  TITAN_DEVICE void turn_each(int64_t row, int64_t column, float whole) const {
    for (int64_t c = column; c < column + kWide && c < columns; ++c) {
      const float factor = factor_of(c, whole);
      for (int64_t r = row; r < row + kTall && r < rows; ++r)
        values.store(c * rows + r, rounded<Format>(widened(x.load(r * columns + c)) * factor));
    }
  }
};

}  // namespace titan::cuda
