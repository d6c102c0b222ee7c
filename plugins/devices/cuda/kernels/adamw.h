// AdamW in one pass over weights whose optimizer states may have another dtype, with optional
// stochastic rounding. Loshchilov and Hutter, 2019; Gupta et al., "Deep learning with limited
// numerical precision", 2015.
#pragma once

#include "pieces.h"

namespace titan::cuda {

struct PhiloxWords {
  uint32_t words[4];
};

/// Philox4x32 with 10 rounds: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011.
TITAN_DEVICE PhiloxWords philox4x32(uint64_t low, uint64_t high, uint64_t key) {
  uint32_t c0 = static_cast<uint32_t>(low), c1 = static_cast<uint32_t>(low >> 32);
  uint32_t c2 = static_cast<uint32_t>(high), c3 = static_cast<uint32_t>(high >> 32);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c0, p1 = uint64_t{0xCD9E8D57} * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {{c0, c1, c2, c3}};
}

/// Position of a slice in the tensor that it is part of, both seen as matrices. The random bits of
/// an element depend on its position in the whole tensor. See titan/nn/rounding.h.
struct PlaceInWhole {
  int64_t columns;        ///< of the slice
  int64_t first;          ///< index of its first element in the whole
  int64_t whole_columns;  ///< of the whole: distance between rows of the slice
  TITAN_DEVICE int64_t operator()(int64_t i) const {
    return first + i / columns * whole_columns + i % columns;
  }
};

struct AdamWNumbers {
  double lr, beta1, beta2, eps, weight_decay;
};

/// m <- m + (1-b1)(g - m), v <- b2 v + (1-b2) g², w <- w - lr·wd·w - lr / (1-b1^t) · m / (sqrt(v) /
/// sqrt(1-b2^t) + eps), in float32, each result rounded once. g is the gradient times `scale`,
/// rounded to the gradient's dtype as a separate multiplication would.
template <class W, class G, class S>
struct AdamW {
  static constexpr int kThreads = 256, kBlocks = 4;
  grid::Span<W> weight;
  grid::Span<const G> gradient;
  grid::Span<S> exp_avg, exp_avg_sq;
  grid::Span<const float>
      step;  ///< (1): t, including this step; on the device, so that the host does not wait
  grid::Span<const float> scale;  ///< (1): factor of the gradient; empty: 1
  AdamWNumbers numbers;
  int64_t per_block;  ///< elements, a multiple of 8
  bool is_aligned;
  bool rounds_at_random;  ///< only if W is BFloat16
  uint64_t key;
  PlaceInWhole place;

  TITAN_DEVICE void operator()() const {
    // 16 bytes of the widest type; more elements of narrow types at a time would not fit the
    // registers
    constexpr int kOthers = kPerAccess<G> < kPerAccess<S> ? kPerAccess<G> : kPerAccess<S>;
    constexpr int N = kPerAccess<W> < kOthers ? kPerAccess<W> : kOthers;
    TITAN_SHARED(float, corrections, 2);
    const float t = step.load(0);
    if (grid::thread() == 0) {  // in double, once per block
      corrections.store(0, static_cast<float>(numbers.lr / (1 - pow(numbers.beta1, double{t}))));
      corrections.store(1, static_cast<float>(sqrt(1 - pow(numbers.beta2, double{t}))));
    }
    grid::sync_block();
    const float step_size = corrections.load(0), correction = corrections.load(1);
    const float decay = static_cast<float>(numbers.lr * numbers.weight_decay);
    const float beta2 = static_cast<float>(numbers.beta2), eps = static_cast<float>(numbers.eps);
    const float rest1 = static_cast<float>(1 - numbers.beta1);
    const float rest2 = static_cast<float>(1 - numbers.beta2);
    const bool is_scaled = scale.size > 0;
    const float factor = is_scaled ? scale.load(0) : 1;
    const int64_t first = grid::block() * per_block;
    const int64_t left = weight.size - first;
    const int64_t count = left < per_block ? left : per_block;
    for_each_piece<N, kThreads>({count, is_aligned ? 0 : count}, [&](int64_t i, auto width) {
      constexpr int M = decltype(width)::value;
      auto w = weight.template piece<M>(first + i);
      const auto g = gradient.template piece<M>(first + i);
      auto m = exp_avg.template piece<M>(first + i);
      auto v = exp_avg_sq.template piece<M>(first + i);
      PhiloxWords random{};
      uint64_t block = ~uint64_t{0};
      for (int k = 0; k < M; ++k) {
        float grad = widened(g[k]);
        if (is_scaled) grad = widened(rounded<G>(grad * factor));
        const float mean = widened(m[k]) + rest1 * (grad - widened(m[k]));
        const float square = beta2 * widened(v[k]) + rest2 * grad * grad;
        m[k] = rounded<S>(mean);
        v[k] = rounded<S>(square);
        float value = widened(w[k]);
        value -= decay * value;
        value -= step_size * mean / (sqrtf(square) / correction + eps);
        if (std::is_same_v<W, BFloat16> && rounds_at_random) {
          const auto at = static_cast<uint64_t>(place(first + i + k));
          if (at / 4 != block) {
            block = at / 4;
            random = philox4x32(block, static_cast<uint64_t>(t), key);
          }
          value = moved(value, pick(random, static_cast<int>(at % 4)) >> 16);
        }
        w[k] = rounded<W>(value);
      }
      weight.template put<M>(first + i, w);
      exp_avg.template put<M>(first + i, m);
      exp_avg_sq.template put<M>(first + i, v);
    });
  }

 private:
  /// Without an index unknown to the compiler, which would cost local memory.
  TITAN_DEVICE static uint32_t pick(const PhiloxWords& random, int lane) {
    const uint32_t low = lane & 1 ? random.words[1] : random.words[0];
    const uint32_t high = lane & 1 ? random.words[3] : random.words[2];
    return lane & 2 ? high : low;
  }
  /// Adds 16 random bits and keeps the upper half, which is a bfloat16 value.
  TITAN_DEVICE static float moved(float value, uint32_t random) {
    if (!is_finite(value)) return value;
    return float_of((bits_of(value) + random) & 0xffff0000u);
  }
};

}  // namespace titan::cuda
