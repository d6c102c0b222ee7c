// The inner loops of matrix products in fp32: packed panels and the tile of the result that stays
// in registers. Used by cpu/matmul.cpp. The method is that of Goto and van de Geijn, "Anatomy of
// high-performance matrix multiplication", 2008.
#pragma once

#include <cstdint>

#include <titan/export.h>

namespace titan::ops {

/// Consecutive rows or columns ("lanes") of a matrix along the axis that a product sums over.
struct Lanes {
  const float* data;
  int64_t lane_stride, depth_stride;  ///< one of them is 1
};

/// Where a tile goes.
struct Tile {
  float* data;
  int64_t stride;  ///< between rows
  int64_t rows, cols;
  bool accumulate;  ///< adds to what is there
};

struct MatmulKernels {
  /// Lanes of a panel of the left and of the right factor: rows and columns of a tile.
  int64_t rows, cols;
  /// out[d · width + i] = lane i of `count` <= width at depth d; lanes from `count` on are 0. Takes
  /// one of the two widths; writes at most 16 floats past the panel.
  void (*pack)(Lanes lanes, int64_t count, int64_t depth, int64_t width, float* out);
  /// tile = left · rightᵀ over packed panels. Each element is one chain of fused multiply-adds in
  /// the order of the depth, wherever in a tile it is.
  void (*multiply)(const float* left, const float* right, int64_t depth, Tile tile);
};

/// Null where this binary has none for the CPU that runs it. Exported for the tests.
TITAN_API const MatmulKernels* matmul_kernels();

}  // namespace titan::ops
