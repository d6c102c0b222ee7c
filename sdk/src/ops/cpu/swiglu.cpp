// swiglu on the CPU: element by element, over threads.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sigmoid.h>

#include "../kernels/kernels.h"
#include "../signatures.h"
#include "rows.h"

namespace titan::ops::cpu {
namespace {

/// Elements per call of an inner loop: some blocks in fp32 fit into a first-level cache.
constexpr int64_t kBlock = 2048;

/// Operands of one shape, cut into blocks.
class Blocks {
 public:
  explicit Blocks(std::initializer_list<const Rows*> operands) : shape_(**operands.begin()) {
    for (const Rows* x : operands) {
      is_flat_ = is_flat_ && x->is_flat();
      is_narrow_ = is_narrow_ || x->is_narrow;
    }
  }

  /// Calls body(first element of the contiguous result, first elements of operands by their
  /// strides, elements, scratch) for each block; several threads. `scratch`: memory for `pieces`
  /// blocks.
  template <class Body>
  void for_each(int64_t pieces, const Body& body) const {
    const int64_t cols = is_flat_ ? kBlock : shape_.cols;
    const int64_t total = shape_.rows * shape_.cols;
    const int64_t rows = cols > 0 ? (total + cols - 1) / cols : 0;
    at::parallel_for(0, rows, grain(cols), [&](int64_t begin, int64_t end) {
      Pieces scratch(is_narrow_, pieces, cols);
      for (int64_t row = begin; row < end; ++row)
        body(row * cols, row, std::min(cols, total - row * cols), scratch);
    });
  }

  const float* operand(const Rows& x, int64_t first, int64_t row, int64_t n, float* scratch) const {
    return x.piece(is_flat_ ? first : row * x.stride, n, scratch);
  }

 private:
  const Rows& shape_;
  bool is_flat_ = true, is_narrow_ = false;
};

}  // namespace

Tensor swiglu_forward(const Tensor& gate, const Tensor& up) {
  if (gate.scalar_type() == at::kDouble) return (gate * at::sigmoid(gate) * up).contiguous();
  const Rows g = rows_of(gate);
  const Rows u = rows_of(up);
  const Result out(gate.sizes(), gate.scalar_type());
  const Blocks blocks({&g, &u});
  blocks.for_each(3, [&](int64_t first, int64_t row, int64_t n, Pieces& scratch) {
    float* const to = out.piece(first, scratch[2]);
    kernels().swiglu_forward(blocks.operand(g, first, row, n, scratch[0]),
                             blocks.operand(u, first, row, n, scratch[1]), to, n);
    out.finish(first, n, to);
  });
  return out.tensor();
}

std::tuple<Tensor, Tensor> swiglu_backward(const Tensor& dout, const Tensor& gate,
                                           const Tensor& up) {
  if (gate.scalar_type() == at::kDouble) {
    const Tensor s = at::sigmoid(gate);
    return {dout * up * (s * (1 + gate * (1 - s))), dout * (gate * s)};
  }
  const Rows d = rows_of(dout);
  const Rows g = rows_of(gate);
  const Rows u = rows_of(up);
  const Result dgate(gate.sizes(), gate.scalar_type()), dup(gate.sizes(), gate.scalar_type());
  const Blocks blocks({&g, &u, &d});
  blocks.for_each(5, [&](int64_t first, int64_t row, int64_t n, Pieces& scratch) {
    float* const to_gate = dgate.piece(first, scratch[3]);
    float* const to_up = dup.piece(first, scratch[4]);
    kernels().swiglu_backward(blocks.operand(d, first, row, n, scratch[0]),
                              blocks.operand(g, first, row, n, scratch[1]),
                              blocks.operand(u, first, row, n, scratch[2]), to_gate, to_up, n);
    dgate.finish(first, n, to_gate);
    dup.finish(first, n, to_up);
  });
  return {dgate.tensor(), dup.tensor()};
}

}  // namespace titan::ops::cpu
