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

constexpr int64_t kBlock = 8192;  // elements that one call of an inner loop takes

bool is_flat(const Rows& x) {
  return x.stride == x.cols || x.rows <= 1;
}

/// Calls body(first element of the contiguous result, row, elements) until all are done; several
/// threads. `flat`: all operands are contiguous, and rows are blocks of kBlock elements.
template <class Body>
void for_each_row(const Rows& shape, bool flat, const Body& body) {
  const int64_t cols = flat ? kBlock : shape.cols;
  const int64_t total = shape.rows * shape.cols;
  const int64_t rows = cols > 0 ? (total + cols - 1) / cols : 0;
  at::parallel_for(0, rows, grain(cols), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      body(row * cols, row, std::min(cols, total - row * cols));
    }
  });
}

}  // namespace

Tensor swiglu_forward(const Tensor& gate, const Tensor& up) {
  if (gate.scalar_type() == at::kDouble) return (gate * at::sigmoid(gate) * up).contiguous();
  const Rows g = rows_of(gate);
  const Rows u = rows_of(up);
  const Tensor out = at::empty(gate.sizes(), g.tensor.options());
  float* out_data = out.mutable_data_ptr<float>();
  const bool flat = is_flat(g) && is_flat(u);
  for_each_row(g, flat, [&](int64_t first, int64_t row, int64_t n) {
    kernels().swiglu_forward(flat ? g.data + first : g.row(row), flat ? u.data + first : u.row(row),
                             out_data + first, n);
  });
  return out.to(gate.scalar_type());
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
  const Tensor dgate = at::empty(gate.sizes(), g.tensor.options());
  const Tensor dup = at::empty(gate.sizes(), g.tensor.options());
  float* dgate_data = dgate.mutable_data_ptr<float>();
  float* dup_data = dup.mutable_data_ptr<float>();
  const bool flat = is_flat(d) && is_flat(g) && is_flat(u);
  for_each_row(g, flat, [&](int64_t first, int64_t row, int64_t n) {
    kernels().swiglu_backward(
        flat ? d.data + first : d.row(row), flat ? g.data + first : g.row(row),
        flat ? u.data + first : u.row(row), dgate_data + first, dup_data + first, n);
  });
  return {dgate.to(gate.scalar_type()), dup.to(gate.scalar_type())};
}

}  // namespace titan::ops::cpu
