#include "reduce_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

// Every loop is compiled twice where the CPU may have AVX2; the inner functions are inlined into
// both.
#if defined(__x86_64__) && defined(__GNUC__)
#define TITAN_CPU_HAS_VARIANTS 1
#define TITAN_CPU_INLINE [[gnu::always_inline]] inline
#else
#define TITAN_CPU_HAS_VARIANTS 0
#define TITAN_CPU_INLINE inline
#endif

namespace titan::cpu {
namespace {

using dist::Reduce;

/// bfloat16 as bits, converted by integer operations, which compilers vectorize.
struct BFloat16Bits {
  uint16_t bits;
};
/// Half precision as bits, converted by shifts and one multiplication.
struct HalfBits {
  uint16_t bits;
};

template <class T>
TITAN_CPU_INLINE T load(T x) {
  return x;
}
TITAN_CPU_INLINE float load(BFloat16Bits x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}
TITAN_CPU_INLINE float load(HalfBits x) {
  return static_cast<float>(c10::Half(x.bits, c10::Half::from_bits()));
}

template <class T, class Wide>
TITAN_CPU_INLINE T store(Wide x) {
  if constexpr (std::is_same_v<T, BFloat16Bits>) {
    const auto u = std::bit_cast<uint32_t>(x);
    const uint32_t rounded = (u + 0x7FFFU + ((u >> 16) & 1U)) >> 16;
    return {static_cast<uint16_t>((u & 0x7FFFFFFFU) > 0x7F800000U ? 0x7FC0U : rounded)};
  } else if constexpr (std::is_same_v<T, HalfBits>) {
    return {c10::Half(x).x};
  } else {
    return static_cast<T>(x);
  }
}

struct Sum {
  template <class T>
  TITAN_CPU_INLINE static T of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {  // wraps around, as two's complement does
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
    } else {
      return a + b;
    }
  }
};
struct Max {
  template <class T>
  TITAN_CPU_INLINE static T of(T a, T b) {
    return a < b ? b : a;
  }
};
struct Min {
  template <class T>
  TITAN_CPU_INLINE static T of(T a, T b) {
    return b < a ? b : a;
  }
};

template <class T, class Op>
TITAN_CPU_INLINE void combine_loop(std::byte* out, const std::byte* a, const std::byte* b,
                                   size_t count) {
  auto* c = reinterpret_cast<T*>(out);
  const auto* x = reinterpret_cast<const T*>(a);
  const auto* y = reinterpret_cast<const T*>(b);
  if constexpr (sizeof(T) == 2 && !std::is_integral_v<T> && !std::is_same_v<Op, Sum>) {
    // copies one of the two unchanged, so that no NaN changes its bits
    for (size_t i = 0; i < count; ++i)
      c[i] = std::is_same_v<Op, Max> ? (load(x[i]) < load(y[i]) ? y[i] : x[i])
                                     : (load(y[i]) < load(x[i]) ? y[i] : x[i]);
  } else {
    for (size_t i = 0; i < count; ++i) c[i] = store<T>(Op::of(load(x[i]), load(y[i])));
  }
}

/// Sums in pieces that stay in the L1 cache.
template <class T>
TITAN_CPU_INLINE void sum_loop(std::byte* out, const std::byte* const* sources, size_t num_sources,
                               size_t count) {
  constexpr size_t kPiece = 1024;
  using Wide = decltype(load(T{}));
  alignas(kPiece) Wide sums[kPiece];
  for (size_t done = 0; done < count; done += kPiece) {
    const size_t n = std::min(kPiece, count - done);
    const auto* first = reinterpret_cast<const T*>(sources[0]) + done;
    if constexpr (sizeof(Wide) != sizeof(T)) {
      // ATen starts from zero, which makes -0 + -0 positive
      for (size_t i = 0; i < n; ++i) sums[i] = 0.0F + load(first[i]);
    } else {
      for (size_t i = 0; i < n; ++i) sums[i] = first[i];
    }
    for (size_t r = 1; r < num_sources; ++r) {
      const auto* next = reinterpret_cast<const T*>(sources[r]) + done;
      for (size_t i = 0; i < n; ++i) sums[i] = Sum::of(sums[i], load(next[i]));
    }
    auto* to = reinterpret_cast<T*>(out) + done;
    for (size_t i = 0; i < n; ++i) to[i] = store<T>(sums[i]);
  }
}

template <class T, class Op>
void combine(std::byte* out, const std::byte* a, const std::byte* b, size_t count) {
  combine_loop<T, Op>(out, a, b, count);
}
template <class T>
void sum(std::byte* out, const std::byte* const* sources, size_t num_sources, size_t count) {
  sum_loop<T>(out, sources, num_sources, count);
}

#if TITAN_CPU_HAS_VARIANTS
template <class T, class Op>
[[gnu::target("avx2")]] void combine_avx2(std::byte* out, const std::byte* a, const std::byte* b,
                                          size_t count) {
  combine_loop<T, Op>(out, a, b, count);
}
template <class T>
[[gnu::target("avx2")]] void sum_avx2(std::byte* out, const std::byte* const* sources,
                                      size_t num_sources, size_t count) {
  sum_loop<T>(out, sources, num_sources, count);
}
#endif

template <class T, class Op>
Combine combine_for_this_cpu() {
#if TITAN_CPU_HAS_VARIANTS
  if (__builtin_cpu_supports("avx2")) return combine_avx2<T, Op>;
#endif
  return combine<T, Op>;
}

template <class T>
SumInOrder sum_for_this_cpu() {
#if TITAN_CPU_HAS_VARIANTS
  if (__builtin_cpu_supports("avx2")) return sum_avx2<T>;
#endif
  return sum<T>;
}

template <class T>
Combine combine_of(Reduce reduce) {
  switch (reduce) {
    case Reduce::sum:
      return combine_for_this_cpu<T, Sum>();
    case Reduce::max:
      return combine_for_this_cpu<T, Max>();
    case Reduce::min:
      return combine_for_this_cpu<T, Min>();
  }
  return nullptr;
}

uint64_t round_up(uint64_t n, uint64_t unit) {
  return (n + unit - 1) / unit * unit;
}

}  // namespace

Combine combine_function(c10::ScalarType type, Reduce reduce) {
  switch (type) {
    case at::kFloat:
      return combine_of<float>(reduce);
    case at::kDouble:
      return combine_of<double>(reduce);
    case at::kHalf:
      return combine_of<HalfBits>(reduce);
    case at::kBFloat16:
      return combine_of<BFloat16Bits>(reduce);
    case at::kChar:
      return combine_of<int8_t>(reduce);
    case at::kByte:
    case at::kBool:
      return combine_of<uint8_t>(reduce);
    case at::kInt:
      return combine_of<int32_t>(reduce);
    case at::kLong:
      return combine_of<int64_t>(reduce);
    default:
      return nullptr;
  }
}

SumInOrder sum_function(c10::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return sum_for_this_cpu<float>();
    case at::kDouble:
      return sum_for_this_cpu<double>();
    case at::kHalf:
      return sum_for_this_cpu<HalfBits>();
    case at::kBFloat16:
      return sum_for_this_cpu<BFloat16Bits>();
    case at::kInt:
      return sum_for_this_cpu<int32_t>();
    case at::kLong:
      return sum_for_this_cpu<int64_t>();
    default:
      return nullptr;
  }
}

RingBlocks::RingBlocks(uint64_t num_elements, uint64_t element_size, int size)
    : total_bytes(num_elements * element_size) {
  constexpr uint64_t kMostOfASegment = uint64_t{1} << 20;
  const auto ranks = static_cast<uint64_t>(size);
  const uint64_t segment_limit =
      element_size * std::max<uint64_t>(1, kMostOfASegment / element_size);
  const uint64_t num_segments =
      round_up(std::max((total_bytes + segment_limit - 1) / segment_limit, ranks * 2), ranks);
  const uint64_t segment_bytes =
      round_up((total_bytes + num_segments - 1) / num_segments, element_size);
  block_bytes = segment_bytes * (num_segments / ranks);
}

uint64_t RingBlocks::begin(int block) const {
  return std::min(total_bytes, static_cast<uint64_t>(block) * block_bytes);
}

}  // namespace titan::cpu
