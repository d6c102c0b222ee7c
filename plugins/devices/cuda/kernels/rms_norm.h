// Root mean square norm, with what is added before it. Zhang and Sennrich, 2019.
#pragma once

#include "pieces.h"

namespace titan::cuda {

/// x <- x + residual where one is given, rounded to T; y = x · rstd · weight with
/// rstd = 1 / sqrt(mean(x²) + eps). A block per row.
template <class T, class W>
struct RmsNormForward {
  static constexpr int kThreads = 256, kBlocks = 4;
  grid::Span<const T> x, residual;  ///< (rows, dim); residual: or nothing
  grid::Span<const W> weight;       ///< (dim)
  grid::Span<T> sum, y;             ///< (rows, dim); sum: where a residual is
  grid::Span<float> rstd;           ///< (rows)
  int64_t dim;
  float eps;
  bool is_aligned;  ///< rows start at multiples of 16 bytes

  TITAN_DEVICE void operator()() const {
    constexpr int N = kPerAccess<T>;
    TITAN_SHARED(float, scratch, kThreads / grid::kWarp);
    const int64_t start = grid::block() * dim;
    const Row row{dim, is_aligned ? 0 : dim};
    float squares = 0;
    for_each_piece<N, kThreads>(row, [&](int64_t i, auto width) {
      constexpr int M = decltype(width)::value;
      auto values = x.template piece<M>(start + i);
      if (residual.size > 0) {
        const auto other = residual.template piece<M>(start + i);
        for (int k = 0; k < M; ++k) values[k] = rounded<T>(widened(values[k]) + widened(other[k]));
        sum.template put<M>(start + i, values);
      }
      for (int k = 0; k < M; ++k) squares += widened(values[k]) * widened(values[k]);
    });
    squares = over_block<kThreads>(squares, scratch, Add{});
    const float scale = 1.0f / sqrtf(squares / static_cast<float>(dim) + eps);
    if (grid::thread() == 0) rstd.store(grid::block(), scale);
    for_each_piece<N, kThreads>(row, [&](int64_t i, auto width) {
      constexpr int M = decltype(width)::value;
      auto values =
          residual.size > 0 ? sum.template piece<M>(start + i) : x.template piece<M>(start + i);
      const auto w = weight.template piece<M>(i);
      for (int k = 0; k < M; ++k)
        values[k] = rounded<T>(widened(values[k]) * scale * widened(w[k]));
      y.template put<M>(start + i, values);
    });
  }
};

/// With n = x · rstd and g = dy · weight: dx = rstd · (g - n · mean(g · n)) + dsum, and of each
/// block's rows the sum of dy · n, in the order of the rows. A block takes `rows_per_block` rows.
template <class T, class W>
struct RmsNormBackward {
  static constexpr int kThreads = 256, kBlocks = 4;
  static constexpr int kSharedColumns = 8192;  ///< wider rows are added up in global memory
  grid::Span<const T> dy, x, dsum;  ///< dsum: what comes to the sum past the norm, or nothing
  grid::Span<const W> weight;
  grid::Span<const float> rstd;
  grid::Span<T> dx;
  grid::Span<float> partial;  ///< (blocks, dim)
  int64_t rows, dim, rows_per_block;
  bool is_aligned;

  TITAN_DEVICE void operator()() const {
    constexpr int N = kPerAccess<T>;
    TITAN_SHARED(float, scratch, kThreads / grid::kWarp);
    TITAN_SHARED(float, columns, kSharedColumns);
    const bool in_shared = dim <= kSharedColumns;
    const Row row{dim, is_aligned ? 0 : dim};
    const int64_t own = grid::block() * dim;
    const int64_t first = grid::block() * rows_per_block;
    const int64_t end = first + rows_per_block < rows ? first + rows_per_block : rows;
    // the same thread has the same columns in every row
    for (int64_t r = first; r < end; ++r) {
      const int64_t start = r * dim;
      const float scale = rstd.load(r);
      float products = 0;
      for_each_piece<N, kThreads>(row, [&](int64_t i, auto width) {
        constexpr int M = decltype(width)::value;
        const auto grad = dy.template piece<M>(start + i);
        const auto in = x.template piece<M>(start + i);
        const auto w = weight.template piece<M>(i);
        for (int k = 0; k < M; ++k)
          products += widened(grad[k]) * widened(w[k]) * (widened(in[k]) * scale);
      });
      const float mean = over_block<kThreads>(products, scratch, Add{}) / static_cast<float>(dim);
      for_each_piece<N, kThreads>(row, [&](int64_t i, auto width) {
        constexpr int M = decltype(width)::value;
        const auto grad = dy.template piece<M>(start + i);
        const auto in = x.template piece<M>(start + i);
        const auto w = weight.template piece<M>(i);
        grid::Piece<T, M> past{}, out;
        if (dsum.size > 0) past = dsum.template piece<M>(start + i);
        for (int k = 0; k < M; ++k) {
          const float n = widened(in[k]) * scale, d = widened(grad[k]);
          float value = (d * widened(w[k]) - n * mean) * scale;
          if (dsum.size > 0) value += widened(past[k]);
          out[k] = rounded<T>(value);
          add(own + i + k, static_cast<int>(i + k), d * n, r == first, in_shared, columns);
        }
        dx.template put<M>(start + i, out);
      });
    }
    if (in_shared)
      for_each_piece<N, kThreads>(row, [&](int64_t i, auto width) {
        for (int k = 0; k < decltype(width)::value; ++k)
          partial.store(own + i + k, columns.load(static_cast<int>(i + k)));
      });
  }

 private:
  TITAN_DEVICE void add(int64_t at, int column, float value, bool is_first, bool in_shared,
                        const grid::Shared<float>& columns) const {
    if (in_shared)
      columns.store(column, is_first ? value : columns.load(column) + value);
    else
      partial.store(at, is_first ? value : partial.load(at) + value);
  }
};

/// out[c] = the sum of partial[r][c] over the rows in order. A thread per column.
template <class W>
struct SumRows {
  static constexpr int kThreads = 128, kBlocks = 8;
  grid::Span<const float> partial;  ///< (rows, columns)
  grid::Span<W> out;
  int64_t rows, columns;

  TITAN_DEVICE void operator()() const {
    const int64_t column = grid::block() * kThreads + grid::thread();
    if (column >= columns) return;
    float sum = 0;
    for (int64_t r = 0; r < rows; ++r) sum += partial.load(r * columns + column);
    out.store(column, rounded<W>(sum));
  }
};

}  // namespace titan::cuda
