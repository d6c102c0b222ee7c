// Kernel: cross entropy of rows of logits; the gradient replaces the logits.
#pragma once

#include "held_row.h"

namespace titan::cuda {

/// The largest logit so far, and Σ e^(logit - largest). Milakov and Gimelshein, "Online normalizer
/// calculation for softmax", 2018.
struct SoftmaxStatistics {
  float largest, sum;
};

struct MergeStatistics {
  TITAN_DEVICE SoftmaxStatistics operator()(SoftmaxStatistics a, SoftmaxStatistics b) const {
    const float largest = Largest{}(a.largest, b.largest);
    // only -infinity so far: nothing to scale
    if (largest == -kInfinity()) return {largest, 0};
    return {largest, a.sum * expf(a.largest - largest) + b.sum * expf(b.largest - largest)};
  }
  TITAN_DEVICE static float kInfinity() { return float_of(0x7f800000u); }
};

/// loss = logsumexp(row) - row[label]; with `wants_gradient` the row becomes softmax - onehot. A
/// row whose label is `ignored` gets loss 0 and gradient 0. One block per row; it reads the row
/// twice and writes it once. `words`, the size of the vocabulary, may be any number.
template <class T>
struct CrossEntropy {
  static constexpr int kThreads = 512, kBlocks = 2;
  static constexpr int kAhead = 4;  ///< reads of a thread in flight at once
  grid::Span<T> logits;             ///< (rows, words)
  grid::Span<const int64_t> labels;
  grid::Span<float> losses;  ///< (rows)
  int64_t words, ignored;
  bool wants_gradient;

  TITAN_DEVICE void operator()() const {
    constexpr int N = kPerAccess<T>;
    TITAN_SHARED(SoftmaxStatistics, scratch, kThreads / grid::kWarp);
    const int64_t label = labels.load(grid::block());
    const bool counts = label != ignored;
    grid::require(!counts || (label >= 0 && label < words),
                  "cross entropy: a label is outside of the vocabulary");
    const int64_t start = grid::block() * words;
    const Row row = row_at<N>(start, words);
    if (!counts) {
      if (grid::thread() == 0) losses.store(grid::block(), 0);
      if (wants_gradient) erase(start, row);
      return;
    }
    SoftmaxStatistics own{-MergeStatistics::kInfinity(), 0};
    for_each_read<N, kThreads, kAhead>(logits, start, row, [&](int64_t, const auto& x, auto width) {
      constexpr int M = decltype(width)::value;
      float largest = widened(x[0]);
      for (int k = 1; k < M; ++k) largest = Largest{}(largest, widened(x[k]));
      SoftmaxStatistics piece{largest, 0};
      if (largest != -MergeStatistics::kInfinity())
        for (int k = 0; k < M; ++k) piece.sum += expf(widened(x[k]) - largest);
      own = MergeStatistics{}(own, piece);
    });
    const SoftmaxStatistics all = over_block<kThreads>(own, scratch, MergeStatistics{});
    const float logsumexp = all.largest + logf(all.sum);
    // read before the barrier, after which the gradient overwrites it
    const float target = widened(logits.load(start + label));
    if (grid::thread() == 0) losses.store(grid::block(), logsumexp - target);
    if (!wants_gradient) return;
    grid::sync_block();
    for_each_read<N, kThreads, kAhead>(logits, start, row, [&](int64_t i, auto x, auto width) {
      constexpr int M = decltype(width)::value;
      for (int k = 0; k < M; ++k) {
        const float p = expf(widened(x[k]) - logsumexp);
        x[k] = rounded<T>(i + k == label ? p - 1 : p);
      }
      logits.template put<M>(start + i, x);
    });
  }

 private:
  TITAN_DEVICE void erase(int64_t start, const Row& row) const {
    for_each_piece<kPerAccess<T>, kThreads>(row, [&](int64_t i, auto width) {
      constexpr int M = decltype(width)::value;
      logits.template put<M>(start + i, grid::Piece<T, M>{});
    });
  }
};

}  // namespace titan::cuda
