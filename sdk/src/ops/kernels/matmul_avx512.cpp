// Matrix products for x86 with AVX-512; ops.cmake compiles this file with those instructions.
#include "matmul.h"

#if defined(__AVX512F__)
#include <utility>

#include <immintrin.h>
#endif

namespace titan::ops {

#if defined(__AVX512F__)

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are never passed between object files

namespace {

#define TITAN_INLINE inline __attribute__((always_inline))

constexpr int kLanes = 16;
/// 28 of 32 registers hold the tile.
constexpr int kRows = 14, kCols = 2 * kLanes;

typedef float Vec __attribute__((vector_size(64)));
typedef float LooseVec __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t Index __attribute__((vector_size(64)));

TITAN_INLINE Vec load(const float* p) {
  return *reinterpret_cast<const LooseVec*>(p);
}
TITAN_INLINE void store(float* p, Vec value) {
  *reinterpret_cast<LooseVec*>(p) = value;
}

/// The first lanes of a vector.
TITAN_INLINE __mmask16 first_lanes(int64_t count) {
  return count >= kLanes ? 0xffff : count > 0 ? static_cast<__mmask16>((1u << count) - 1) : 0;
}
/// What `lanes` leaves out is 0 and not touched.
TITAN_INLINE Vec load_some(const float* p, __mmask16 lanes) {
  return _mm512_maskz_loadu_ps(lanes, p);
}

/// Of a 16 x 16 matrix, by halves: rows `Distance` apart change every second block of that size.
template <int Distance>
TITAN_INLINE void transpose_step(Vec (&m)[kLanes]) {
  Index low, high;
  for (int i = 0; i < kLanes; ++i) {
    const bool second = (i & Distance) != 0;
    low[i] = second ? i - Distance + kLanes : i;
    high[i] = second ? i + kLanes : i + Distance;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    if ((i & Distance) != 0) continue;
    const Vec a = m[i], b = m[i + Distance];
    m[i] = __builtin_shuffle(a, b, low);
    m[i + Distance] = __builtin_shuffle(a, b, high);
  }
}

/// 16 lanes that lie along the depth, `depth` <= 16 of them.
TITAN_INLINE void pack_across(Lanes lanes, int64_t count, int64_t depth, int64_t width,
                              float* out) {
  const __mmask16 valid = first_lanes(depth);
  Vec m[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i)
    m[i] = load_some(lanes.data + i * lanes.lane_stride, i < count ? valid : 0);
  transpose_step<8>(m);
  transpose_step<4>(m);
  transpose_step<2>(m);
  transpose_step<1>(m);
  if (depth == kLanes) {
#pragma GCC unroll 16
    for (int d = 0; d < kLanes; ++d) store(out + d * width, m[d]);
  } else {
    for (int64_t d = 0; d < depth; ++d) store(out + d * width, m[d]);
  }
}

/// 16 lanes that lie side by side.
TITAN_INLINE void pack_along(Lanes lanes, int64_t count, int64_t depth, int64_t width, float* out) {
  const __mmask16 valid = first_lanes(count);
  for (int64_t d = 0; d < depth; ++d)
    store(out + d * width, load_some(lanes.data + d * lanes.depth_stride, valid));
}

/// Of 14 lanes, the next depth's overwrite the two too many.
void pack(Lanes lanes, int64_t count, int64_t depth, int64_t width, float* out) {
  if (lanes.lane_stride == 1) {
    for (int64_t first = 0; first < width; first += kLanes) {
      pack_along({lanes.data + first, 1, lanes.depth_stride}, count - first, depth, width,
                 out + first);
    }
    return;
  }
  for (int64_t d = 0; d < depth; d += kLanes) {
    const int64_t part = depth - d < kLanes ? depth - d : kLanes;
    for (int64_t first = 0; first < width; first += kLanes) {
      pack_across({lanes.data + first * lanes.lane_stride + d, lanes.lane_stride, 1}, count - first,
                  part, width, out + d * width + first);
    }
  }
}

template <int Rows>
TITAN_INLINE void multiply_rows(const float* left, const float* right, int64_t depth,
                                const Tile& tile) {
  // what the tile is added to, or overwrites, comes while the sums are made
  for (int r = 0; r < Rows; ++r) {
    __builtin_prefetch(tile.data + r * tile.stride, 1);
    __builtin_prefetch(tile.data + r * tile.stride + kLanes, 1);
  }
  Vec sum[Rows][2];
#pragma GCC unroll 14
  for (int r = 0; r < Rows; ++r) sum[r][0] = sum[r][1] = Vec{};
  for (int64_t d = 0; d < depth; ++d) {
    const Vec first = load(right), second = load(right + kLanes);
#pragma GCC unroll 14
    for (int r = 0; r < Rows; ++r) {
      const Vec x = left[r] - Vec{};
      sum[r][0] += x * first;
      sum[r][1] += x * second;
    }
    left += kRows;
    right += kCols;
  }
#pragma GCC unroll 14
  for (int r = 0; r < Rows; ++r) {
    float* to = tile.data + r * tile.stride;
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __mmask16 valid = first_lanes(tile.cols - half * kLanes);
      Vec value = sum[r][half];
      if (tile.accumulate) value = load_some(to + half * kLanes, valid) + value;
      _mm512_mask_storeu_ps(to + half * kLanes, valid, value);
    }
  }
}

/// Calls body(the number of rows, known when this is compiled).
template <class Body, int... Counts>
TITAN_INLINE void with_rows(int64_t rows, const Body& body, std::integer_sequence<int, Counts...>) {
  ((rows == Counts + 1 ? body(std::integral_constant<int, Counts + 1>{}) : void()), ...);
}

void multiply(const float* left, const float* right, int64_t depth, Tile tile) {
  with_rows(
      tile.rows, [&](auto rows) { multiply_rows<rows>(left, right, depth, tile); },
      std::make_integer_sequence<int, kRows>{});
}

constexpr MatmulKernels kMatmul{kRows, kCols, pack, multiply};

}  // namespace

const MatmulKernels* matmul_kernels() {
  // On Intel's CPUs MKL, which LibTorch multiplies with, has products for AVX-512; elsewhere it
  // makes do with AVX2.
  static const bool kSuits = __builtin_cpu_supports("avx512f") && !__builtin_cpu_is("intel");
  return kSuits ? &kMatmul : nullptr;
}

#else

const MatmulKernels* matmul_kernels() {
  return nullptr;
}

#endif

}  // namespace titan::ops
