// grouped_mm on the CPU: the products of all groups are cut into tiles, which the threads take in
// turn, so that many small groups keep all of them busy. Tiles depend only on the shapes, and one
// thread computes each, so the bits do not depend on the number of threads.
#include <algorithm>
#include <atomic>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <c10/util/FunctionRef.h>
#include <titan/ops/grouped_linear.h>

#include "../autograd.h"
#include "../signatures.h"
#include "../slow_products.h"

namespace titan::ops::cpu {
namespace {

/// Maximum tile of a result. Within a tile a BLAS is as fast as with whole matrices.
constexpr int64_t kTileRows = 256, kTileCols = 512;
/// Maximum depth of a sum whose operands are widened: a thread's widened operands stay in its
/// cache.
constexpr int64_t kTileDepth = 512;

/// Rows [row, row + num_rows) and columns of the result that belongs to `rows`.
struct GroupTile {
  GroupRows rows;
  int64_t row, num_rows, col, num_cols;
};

void add_tiles(std::vector<GroupTile>& tiles, const GroupRows& rows, int64_t num_rows,
               int64_t num_cols) {
  for (int64_t row = 0; row < num_rows; row += kTileRows)
    for (int64_t col = 0; col < num_cols; col += kTileCols)
      tiles.push_back({.rows = rows,
                       .row = row,
                       .num_rows = std::min(kTileRows, num_rows - row),
                       .col = col,
                       .num_cols = std::min(kTileCols, num_cols - col)});
}

/// Memory of a thread for a matrix in fp32. Not a tensor, because a step's peak memory would depend
/// on the number of threads that compute at the same time.
class WideMatrix {
 public:
  Tensor empty(int64_t rows, int64_t cols) { return view(rows, cols, {cols, 1}); }
  /// The copy, in the memory order of `part`.
  Tensor copy_of(const Tensor& part) {
    const int64_t rows = part.size(0), cols = part.size(1);
    const bool by_columns = part.stride(0) == 1 && part.stride(1) != 1;
    return (by_columns ? view(rows, cols, {1, rows}) : empty(rows, cols)).copy_(part);
  }

 private:
  Tensor view(int64_t rows, int64_t cols, at::IntArrayRef strides) {
    memory_.resize(std::max(memory_.size(), static_cast<size_t>(rows * cols)));
    return at::from_blob(memory_.data(), {rows, cols}, strides, at::kFloat);
  }

  std::vector<float> memory_;
};

/// out (m, n) = a (m, k) · b (k, n), all of one dtype.
struct TileProduct {
  Tensor a, b, out;
};

/// Multiplies in fp32, so that sums are rounded once.
class WideMultiplier {
 public:
  void operator()(const TileProduct& p) {
    const int64_t depth = p.a.size(1);
    Tensor sum = sum_.empty(p.out.size(0), p.out.size(1));
    for (int64_t first = 0; first == 0 || first < depth; first += kTileDepth) {
      const int64_t count = std::min(kTileDepth, depth - first);
      const Tensor a = a_.copy_of(p.a.narrow(1, first, count));
      const Tensor b = b_.copy_of(p.b.narrow(0, first, count));
      if (first == 0)
        at::mm_out(sum, a, b);
      else
        sum.addmm_(a, b);
    }
    p.out.copy_(sum);
  }

 private:
  WideMatrix a_, b_, sum_;
};

bool is_computed_in_tiles(at::ScalarType type) {
  return type == at::kFloat || are_products_slow(type);
}

void multiply(const std::vector<GroupTile>& tiles, at::ScalarType type,
              c10::function_ref<TileProduct(const GroupTile&)> product_of) {
  if (tiles.empty()) return;
  const bool widens = type != at::kFloat;
  std::atomic<size_t> next = 0;
  // at least two: a BLAS uses one thread only inside a parallel region
  const int64_t workers = std::clamp<int64_t>(static_cast<int64_t>(tiles.size()), 2,
                                              std::max(2, at::get_num_threads()));
  at::parallel_for(0, workers, 1, [&](int64_t, int64_t) {
    BelowAutograd guard;
    WideMultiplier by_fp32;
    for (size_t i = next++; i < tiles.size(); i = next++) {
      TileProduct product = product_of(tiles[i]);
      if (widens)
        by_fp32(product);
      else
        at::mm_out(product.out, product.a, product.b);
    }
  });
}

}  // namespace

Tensor grouped_mm(const Tensor& x, const Tensor& weight, at::IntArrayRef rows) {
  if (!is_computed_in_tiles(x.scalar_type())) return grouped_mm_by_groups(x, weight, rows);
  const Tensor out = at::empty({x.size(0), weight.size(2)}, x.options());
  std::vector<GroupTile> tiles;
  for (const GroupRows& group : rows_of_groups(rows))
    add_tiles(tiles, group, group.count, out.size(1));
  multiply(tiles, x.scalar_type(), [&](const GroupTile& tile) -> TileProduct {
    const int64_t row = tile.rows.first + tile.row;
    return {.a = x.narrow(0, row, tile.num_rows),
            .b = weight[tile.rows.group].narrow(1, tile.col, tile.num_cols),
            .out = out.narrow(0, row, tile.num_rows).narrow(1, tile.col, tile.num_cols)};
  });
  return out;
}

Tensor grouped_mm_weight_grad(const Tensor& grad, const Tensor& x, at::IntArrayRef rows) {
  if (!is_computed_in_tiles(x.scalar_type()))
    return grouped_mm_weight_grad_by_groups(grad, x, rows);
  const auto num_groups = static_cast<int64_t>(rows.size());
  const Tensor out = at::empty({num_groups, grad.size(1), x.size(1)}, grad.options());
  for (int64_t group = 0; group < num_groups; ++group)
    if (rows[static_cast<size_t>(group)] == 0) out[group].zero_();
  std::vector<GroupTile> tiles;
  for (const GroupRows& group : rows_of_groups(rows))
    add_tiles(tiles, group, out.size(1), out.size(2));
  multiply(tiles, x.scalar_type(), [&](const GroupTile& tile) -> TileProduct {
    const auto& [group, first, count] = tile.rows;
    return {
        .a = grad.narrow(0, first, count).narrow(1, tile.row, tile.num_rows).t(),
        .b = x.narrow(0, first, count).narrow(1, tile.col, tile.num_cols),
        .out = out[group].narrow(0, tile.row, tile.num_rows).narrow(1, tile.col, tile.num_cols)};
  });
  return out;
}

}  // namespace titan::ops::cpu
