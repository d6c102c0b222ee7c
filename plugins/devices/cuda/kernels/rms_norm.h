// Kernels: root mean square norm with an optional addition before it. Zhang and Sennrich, 2019.
#pragma once

#include "held_row.h"

namespace titan::cuda {

/// x <- x + residual if there is one, rounded to T; y = x · rstd · weight with rstd = 1 /
/// sqrt(mean(x²) + eps). One block per row.
template <class T, class W>
struct RmsNormForward {
  static constexpr int kThreads = 256, kBlocks = 4;
  grid::Span<const T> x, residual;  ///< (rows, dim); residual may be empty
  grid::Span<const W> weight;       ///< (dim)
  grid::Span<T> sum, y;             ///< (rows, dim); sum: only with a residual
  grid::Span<float> rstd;           ///< (rows)
  int64_t dim;
  float eps;
  bool is_aligned;  ///< rows start at multiples of 16 bytes

  TITAN_DEVICE void operator()() const {
    constexpr int64_t kColumns = int64_t{kPerAccess<T>} * kThreads;
    TITAN_SHARED(float, scratch, kThreads / grid::kWarp);
    if (is_aligned && dim <= kColumns)
      held<1>(scratch);
    else if (is_aligned && dim <= 2 * kColumns)
      held<2>(scratch);
    else if (is_aligned && dim <= 4 * kColumns)
      held<4>(scratch);
    else
      wide(scratch);
  }

 private:
  /// For a row of at most kPieces accesses per thread.
  template <int kPieces>
  TITAN_DEVICE void held(const grid::Shared<float>& scratch) const {
    constexpr int N = kPerAccess<T>;
    const int64_t start = grid::block() * dim;
    Held<T, N> values[kPieces]{};
    for_each_held<N, kThreads, kPieces>(
        dim, [&](int j, int i) { values[j] = Held<T, N>(x.template piece<N>(start + i)); });
    if (residual.size > 0) {
      Held<T, N> others[kPieces]{};
      for_each_held<N, kThreads, kPieces>(dim, [&](int j, int i) {
        others[j] = Held<T, N>(residual.template piece<N>(start + i));
      });
      for_each_held<N, kThreads, kPieces>(dim, [&](int j, int i) {
        grid::Piece<T, N> both;
        for (int k = 0; k < N; ++k) both[k] = rounded<T>(values[j][k] + others[j][k]);
        sum.template put<N>(start + i, both);
        values[j] = Held<T, N>(both);
      });
    }
    float squares = 0;
    for_each_held<N, kThreads, kPieces>(dim, [&](int j, int) {
      for (int k = 0; k < N; ++k) squares += values[j][k] * values[j][k];
    });
    squares = over_block<kThreads>(squares, scratch, Add{});
    const float scale = 1.0f / sqrtf(squares / static_cast<float>(dim) + eps);
    if (grid::thread() == 0) rstd.store(grid::block(), scale);
    for_each_held<N, kThreads, kPieces>(dim, [&](int j, int i) {
      const auto w = weight.template piece<N>(i);
      grid::Piece<T, N> out;
      for (int k = 0; k < N; ++k) out[k] = rounded<T>(values[j][k] * scale * widened(w[k]));
      y.template put<N>(start + i, out);
    });
  }

  /// For a row of any length at any address; reads it twice.
  TITAN_DEVICE void wide(const grid::Shared<float>& scratch) const {
    constexpr int N = kPerAccess<T>;
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

/// With n = x · rstd and g = dy · weight: dx = rstd · (g - n · mean(g · n)) + dsum. Also sums dy ·
/// n over each block's rows, in the order of the rows. A block handles `rows_per_block` rows.
template <class T, class W>
struct RmsNormBackward {
  static constexpr int kThreads = 256, kBlocks = 4;
  static constexpr int kSharedColumns = 8192;  ///< wider rows are added up in global memory
  /// Pieces of a row for which a thread has registers, including their sums.
  static constexpr int kMostHeld = sizeof(T) < sizeof(float) ? 2 : 1;
  grid::Span<const T> dy, x, dsum;  ///< dsum: gradient that bypasses the norm; may be empty
  grid::Span<const W> weight;
  grid::Span<const float> rstd;
  grid::Span<T> dx;
  grid::Span<float> partial;  ///< (blocks, dim)
  int64_t rows, dim, rows_per_block;
  bool is_aligned;  ///< rows start at multiples of 16 bytes

  TITAN_DEVICE void operator()() const {
    constexpr int64_t kColumns = int64_t{kPerAccess<T>} * kThreads;
    TITAN_SHARED(float, scratch, 2 * kThreads / grid::kWarp);
    TITAN_SHARED(float, columns, kSharedColumns);
    if (is_aligned && dim <= kColumns)
      held<1>(scratch);
    else if (kMostHeld == 2 && is_aligned && dim <= 2 * kColumns)
      held<2>(scratch);
    else
      wide(scratch, columns);
  }

 private:
  TITAN_DEVICE int64_t first_row() const { return grid::block() * rows_per_block; }
  TITAN_DEVICE int64_t last_row() const {
    const int64_t end = first_row() + rows_per_block;
    return end < rows ? end : rows;
  }

  /// For a row of at most kPieces accesses per thread; sums of columns stay in registers.
  template <int kPieces>
  TITAN_DEVICE void held(const grid::Shared<float>& scratch) const {
    constexpr int N = kPerAccess<T>;
    float sums[kPieces][N]{};
    int turn = 0;
    const int64_t end = last_row();
    for (int64_t r = first_row(); r < end; ++r) {
      const int64_t start = r * dim;
      const float scale = rstd.load(r);
      Held<T, N> grad[kPieces]{}, in[kPieces]{}, past[kPieces]{};
      for_each_held<N, kThreads, kPieces>(dim, [&](int j, int i) {
        grad[j] = Held<T, N>(dy.template piece<N>(start + i));
        in[j] = Held<T, N>(x.template piece<N>(start + i));
      });
      if (dsum.size > 0)
        for_each_held<N, kThreads, kPieces>(
            dim, [&](int j, int i) { past[j] = Held<T, N>(dsum.template piece<N>(start + i)); });
      float products = 0;
      for_each_held<N, kThreads, kPieces>(dim, [&](int j, int i) {
        const auto w = weight.template piece<N>(i);
        for (int k = 0; k < N; ++k) products += grad[j][k] * widened(w[k]) * (in[j][k] * scale);
      });
      const float mean =
          over_block_in_turn<kThreads>(turn, products, scratch, Add{}) / static_cast<float>(dim);
      turn = 1 - turn;
      for_each_held<N, kThreads, kPieces>(dim, [&](int j, int i) {
        const auto w = weight.template piece<N>(i);
        grid::Piece<T, N> out;
        for (int k = 0; k < N; ++k) {
          const float n = in[j][k] * scale, d = grad[j][k];
          float value = (d * widened(w[k]) - n * mean) * scale;
          if (dsum.size > 0) value += past[j][k];
          out[k] = rounded<T>(value);
          sums[j][k] += d * n;
        }
        dx.template put<N>(start + i, out);
      });
    }
    for_each_held<N, kThreads, kPieces>(dim, [&](int j, int i) {
      grid::Piece<float, N> out;
      for (int k = 0; k < N; ++k) out[k] = sums[j][k];
      partial.template put<N>(grid::block() * dim + i, out);
    });
  }

  /// For a row of any length at any address; reads it twice. A thread handles the same columns in
  /// every row.
  TITAN_DEVICE void wide(const grid::Shared<float>& scratch,
                         const grid::Shared<float>& columns) const {
    constexpr int N = kPerAccess<T>;
    const bool in_shared = dim <= kSharedColumns;
    const Row row{dim, is_aligned ? 0 : dim};
    const int64_t own = grid::block() * dim, first = first_row(), end = last_row();
    int turn = 0;
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
      const float mean =
          over_block_in_turn<kThreads>(turn, products, scratch, Add{}) / static_cast<float>(dim);
      turn = 1 - turn;
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
          add(own + i + k, place<M>(i, k), d * n, r == first, in_shared, columns);
        }
        dx.template put<M>(start + i, out);
      });
    }
    if (in_shared)
      for_each_piece<N, kThreads>(row, [&](int64_t i, auto width) {
        constexpr int M = decltype(width)::value;
        for (int k = 0; k < M; ++k) partial.store(own + i + k, columns.load(place<M>(i, k)));
      });
  }

  /// Index in shared memory of the sum of column i + k. Neighbouring threads have neighbouring
  /// indices, which lie in different banks. A row consists of pieces of M only, or of single
  /// numbers only.
  template <int M>
  TITAN_DEVICE static int place(int64_t i, int k) {
    constexpr int kWidth = M * kThreads;
    const int column = static_cast<int>(i);
    return column / kWidth * kWidth + k * kThreads + column % kWidth / M;
  }

  TITAN_DEVICE void add(int64_t at, int column, float value, bool is_first, bool in_shared,
                        const grid::Shared<float>& columns) const {
    if (in_shared)
      columns.store(column, is_first ? value : columns.load(column) + value);
    else
      partial.store(at, is_first ? value : partial.load(at) + value);
  }
};

/// out[c] = the sum of partial[r][c] over the rows. Each lane of a block has a column. Warp w adds
/// rows w, w + kWarps, ... in order, then the block adds the sums of its warps in order.
template <class W>
struct SumRows {
  static constexpr int kThreads = 1024, kBlocks = 1;
  static constexpr int kWarps = kThreads / grid::kWarp;
  grid::Span<const float> partial;  ///< (rows, columns)
  grid::Span<W> out;
  int64_t rows, columns;

  TITAN_DEVICE void operator()() const {
    TITAN_SHARED(float, shares, kThreads);
    const int64_t column = grid::block() * grid::kWarp + grid::lane();
    const bool has_column = column < columns;
    float sum = 0;
    if (has_column)
      for (int64_t r = grid::warp(); r < rows; r += kWarps)
        sum += partial.load(r * columns + column);
    shares.store(grid::thread(), sum);
    grid::sync_block();
    if (grid::warp() > 0 || !has_column) return;
    for (int warp = 1; warp < kWarps; ++warp) sum += shares.load(warp * grid::kWarp + grid::lane());
    out.store(column, rounded<W>(sum));
  }
};

}  // namespace titan::cuda
