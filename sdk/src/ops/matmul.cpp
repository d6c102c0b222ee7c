#include "matmul.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include "kernels/matmul.h"

namespace titan::ops {
namespace {

using at::Tensor;

/// Multiplications from which on it pays to pack the factors.
constexpr int64_t kLargeProduct = int64_t{1} << 21;
constexpr int64_t kMaxDepth = 256;  // of packed panels: both factors' stay in the second cache
constexpr int64_t kMaxCols = 2048;  // of the right factor that are packed at once
constexpr int64_t kMaxPanels = 16;  // of the left factor that a thread packs at once
constexpr int64_t kSlack = 16;      // floats that packing may write past the end

/// Memory of this thread for packed panels, at least `count` floats. It is kept: a product takes no
/// memory that a device counts, and the largest need is some 2 MiB.
template <class Purpose>
float* panel_memory(int64_t count) {
  struct Free {
    void operator()(void* data) const { std::free(data); }
  };
  thread_local std::unique_ptr<float, Free> memory;
  thread_local int64_t size = 0;
  if (size < count) {
    constexpr size_t kAlignment = 64;
    const size_t bytes = (count * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
    memory.reset(static_cast<float*>(std::aligned_alloc(kAlignment, bytes)));
    if (!memory) throw std::bad_alloc();
    size = count;
  }
  return memory.get();
}
struct OfRight {};
struct OfLeft {};

int64_t divided(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

bool has_unit_stride(const Tensor& x) {
  return x.stride(0) == 1 || x.stride(1) == 1;
}

bool takes(const Tensor& out, const Tensor& a, const Tensor& b) {
  for (const Tensor* x : {&out, &a, &b})
    if (!x->is_cpu() || x->scalar_type() != at::kFloat || x->dim() != 2) return false;
  return out.stride(1) == 1 && has_unit_stride(a) && has_unit_stride(b) && a.numel() > 0 &&
         b.numel() > 0 && matmul_kernels() != nullptr;
}

/// One product, block by block of the right factor.
class Product {
 public:
  Product(const Tensor& out, const Tensor& a, const Tensor& b, bool accumulate)
      : kernels_(*matmul_kernels()),
        out_(out.mutable_data_ptr<float>()),
        out_stride_(out.stride(0)),
        left_{a.const_data_ptr<float>(), a.stride(0), a.stride(1)},
        right_{b.const_data_ptr<float>(), b.stride(1), b.stride(0)},
        rows_(a.size(0)),
        cols_(b.size(1)),
        depth_(a.size(1)),
        accumulate_(accumulate) {
    // a tensor with one row or column may say anything of that stride
    for (Lanes* lanes : {&left_, &right_})
      if (lanes->lane_stride != 1) lanes->depth_stride = 1;
  }

  void run() {
    const int64_t block_cols = std::min(kMaxCols, divided(cols_, kernels_.cols) * kernels_.cols);
    const int64_t block_depth = block_of_depth();
    float* const packed = panel_memory<OfRight>(block_depth * block_cols + kSlack);
    for (int64_t col = 0; col < cols_; col += block_cols) {
      const int64_t cols = std::min(block_cols, cols_ - col);
      for (int64_t d = 0; d < depth_; d += block_depth) {
        const int64_t depth = std::min(block_depth, depth_ - d);
        multiply_block({.col = col, .cols = cols, .first = d, .depth = depth}, packed);
      }
    }
  }

 private:
  struct Block {
    int64_t col, cols;     // of the right factor
    int64_t first, depth;  // of the axis that is summed over
  };

  /// Equal blocks, whole in the lanes of a vector.
  int64_t block_of_depth() const {
    constexpr int64_t kLanes = 16;
    const int64_t blocks = divided(depth_, kMaxDepth);
    return divided(divided(depth_, blocks), kLanes) * kLanes;
  }

  static Lanes from(const Lanes& lanes, int64_t lane, int64_t depth) {
    return {lanes.data + lane * lanes.lane_stride + depth * lanes.depth_stride, lanes.lane_stride,
            lanes.depth_stride};
  }

  void multiply_block(const Block& block, float* packed) const {
    const int64_t width = kernels_.cols;
    const int64_t panels = divided(block.cols, width);
    at::parallel_for(0, panels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p)
        kernels_.pack(from(right_, block.col + p * width, block.first),
                      std::min(width, block.cols - p * width), block.depth, width,
                      packed + p * width * block.depth);
    });
    const int64_t left_panels = divided(rows_, kernels_.rows);
    if (left_panels >= 2 * at::get_num_threads() || left_panels >= panels) {
      at::parallel_for(0, left_panels, 1, [&](int64_t begin, int64_t end) {
        multiply_panels(block, packed, {begin, end}, {0, panels});
      });
    } else {
      at::parallel_for(0, panels, 1, [&](int64_t begin, int64_t end) {
        multiply_panels(block, packed, {0, left_panels}, {begin, end});
      });
    }
  }

  struct Range {
    int64_t begin, end;
  };

  void multiply_panels(const Block& block, const float* packed, Range left, Range right) const {
    const int64_t height = kernels_.rows, width = kernels_.cols;
    const int64_t most = std::min(kMaxPanels, left.end - left.begin);
    float* const panels = panel_memory<OfLeft>(most * height * block.depth + kSlack);
    for (int64_t first = left.begin; first < left.end; first += most) {
      const int64_t count = std::min(most, left.end - first);
      for (int64_t p = 0; p < count; ++p)
        kernels_.pack(from(left_, (first + p) * height, block.first), rows_at(first + p),
                      block.depth, height, panels + p * height * block.depth);
      for (int64_t q = right.begin; q < right.end; ++q)
        for (int64_t p = 0; p < count; ++p)
          kernels_.multiply(
              panels + p * height * block.depth, packed + q * width * block.depth, block.depth,
              {.data = out_ + (first + p) * height * out_stride_ + block.col + q * width,
               .stride = out_stride_,
               .rows = rows_at(first + p),
               .cols = std::min(width, block.cols - q * width),
               .accumulate = accumulate_ || block.first > 0});
    }
  }

  int64_t rows_at(int64_t panel) const {
    return std::min(kernels_.rows, rows_ - panel * kernels_.rows);
  }

  const MatmulKernels& kernels_;
  float* out_;
  int64_t out_stride_;
  Lanes left_, right_;
  int64_t rows_, cols_, depth_;
  bool accumulate_;
};

}  // namespace

bool multiply_in_tiles(const Tensor& out, const Tensor& a, const Tensor& b, bool accumulate) {
  if (!takes(out, a, b)) return false;
  Product(out, a, b, accumulate).run();
  return true;
}

void product_into(const Tensor& out, const Tensor& a, const Tensor& b, bool accumulate) {
  const bool is_large = a.size(0) * a.size(1) * b.size(1) >= kLargeProduct;
  if (is_large && multiply_in_tiles(out, a, b, accumulate)) return;
  Tensor to = out;
  if (accumulate)
    to.addmm_(a, b);
  else
    at::mm_out(to, a, b);
}

Tensor matrix_product(const Tensor& a, const Tensor& b) {
  if (!a.is_cpu() || a.scalar_type() != at::kFloat) return at::mm(a, b);
  const Tensor out = at::empty({a.size(0), b.size(1)}, a.options());
  product_into(out, a, b, /*accumulate=*/false);
  return out;
}

}  // namespace titan::ops
