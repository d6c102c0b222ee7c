// Matrix products for x86 with AVX-512; ops.cmake compiles this file with those instructions.
#include "matmul.h"

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

TITAN_INLINE Vec load_some(const float* p, int64_t count) {
  Vec value{};
  for (int64_t i = 0; i < count; ++i) value[i] = p[i];
  return value;
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
  Vec m[kLanes];
  if (count >= kLanes && depth == kLanes) {
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) m[i] = load(lanes.data + i * lanes.lane_stride);
  } else {
    for (int i = 0; i < kLanes; ++i) {
      const float* row = lanes.data + i * lanes.lane_stride;
      m[i] = i >= count ? Vec{} : depth == kLanes ? load(row) : load_some(row, depth);
    }
  }
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
  for (int64_t d = 0; d < depth; ++d) {
    const float* row = lanes.data + d * lanes.depth_stride;
    store(out + d * width, count >= kLanes ? load(row) : load_some(row, count));
  }
}

/// Of 14 lanes, the next depth's overwrite the two too many.
void pack(Lanes lanes, int64_t count, int64_t depth, int64_t width, float* out) {
  if (lanes.lane_stride == 1) {
    for (int64_t first = 0; first < width; first += kLanes) {
      const int64_t valid = count - first < width - first ? count - first : width - first;
      pack_along({lanes.data + first, 1, lanes.depth_stride}, valid > 0 ? valid : 0, depth, width,
                 out + first);
    }
    return;
  }
  for (int64_t d = 0; d < depth; d += kLanes) {
    const int64_t part = depth - d < kLanes ? depth - d : kLanes;
    for (int64_t first = 0; first < width; first += kLanes) {
      const int64_t valid = count - first;
      pack_across({lanes.data + first * lanes.lane_stride + d, lanes.lane_stride, 1},
                  valid > 0 ? valid : 0, part, width, out + d * width + first);
    }
  }
}

template <int Rows>
void multiply_rows(const float* left, const float* right, int64_t depth, const Tile& tile) {
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
    if (tile.cols == kCols) {
      store(to, tile.accumulate ? load(to) + sum[r][0] : sum[r][0]);
      store(to + kLanes, tile.accumulate ? load(to + kLanes) + sum[r][1] : sum[r][1]);
    } else {
      float both[kCols];
      store(both, sum[r][0]);
      store(both + kLanes, sum[r][1]);
      for (int64_t i = 0; i < tile.cols; ++i) to[i] = tile.accumulate ? to[i] + both[i] : both[i];
    }
  }
}

using MultiplyRows = void (*)(const float*, const float*, int64_t, const Tile&);
constexpr MultiplyRows kMultiplyRows[kRows] = {
    multiply_rows<1>,  multiply_rows<2>,  multiply_rows<3>,  multiply_rows<4>, multiply_rows<5>,
    multiply_rows<6>,  multiply_rows<7>,  multiply_rows<8>,  multiply_rows<9>, multiply_rows<10>,
    multiply_rows<11>, multiply_rows<12>, multiply_rows<13>, multiply_rows<14>};

void multiply(const float* left, const float* right, int64_t depth, Tile tile) {
  kMultiplyRows[tile.rows - 1](left, right, depth, tile);
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
