// rms_norm on the CPU: rows over threads; the weight's gradient in fixed chunks of rows.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "../kernels/kernels.h"
#include "../signatures.h"
#include "rows.h"

namespace titan::ops::cpu {
namespace {

/// Rows whose contributions to the weight's gradient are summed sequentially.
constexpr int64_t kBlockRows = 16;
/// Limits of the chunks of rows that threads take.
constexpr int64_t kMinChunkRows = 64;
constexpr int64_t kMaxChunks = 64;

Tensor column(const Tensor& rstd, const Tensor& x) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = 1;
  return rstd.view(shape);
}

std::tuple<Tensor, Tensor> forward_in_double(const Tensor& x, const Tensor& weight, double eps) {
  const Tensor rstd = x.square().mean(-1, /*keepdim=*/true).add(eps).rsqrt();
  return {(x * rstd * weight.to(at::kDouble)).contiguous(), rstd.reshape({rstd.numel()})};
}

std::tuple<Tensor, Tensor> backward_in_double(const Tensor& dy, const Tensor& x,
                                              const Tensor& weight, const Tensor& rstd) {
  const Tensor scale = column(rstd, x);
  const Tensor n = x * scale;
  const Tensor g = dy * weight.to(at::kDouble);
  const Tensor dx = scale * (g - n * (g * n).mean(-1, /*keepdim=*/true));
  const Tensor dweight = (dy * n).reshape({rstd.numel(), x.size(-1)}).sum(0);
  return {dx, dweight.to(weight.scalar_type())};
}

/// `residual`: null, or rows of the shape of dy that are added to dx.
std::tuple<Tensor, Tensor> backward_in_float(const Tensor& dy, const Tensor& x,
                                             const Tensor& weight, const Tensor& rstd,
                                             const Rows* residual) {
  const Rows grad = cpu::rows_of(dy);
  const Rows in = cpu::rows_of(x);
  const Tensor w = floats_of(weight);
  const int64_t dim = in.cols;
  const Result dx(x.sizes(), x.scalar_type());
  const float* rstd_data = rstd.const_data_ptr<float>();

  // Sums short blocks within chunks, and the chunks in pairs: about as exact as a pairwise sum of
  // all rows.
  const int64_t chunk_rows = std::max(kMinChunkRows, (in.rows + kMaxChunks - 1) / kMaxChunks);
  const int64_t num_chunks = std::max<int64_t>(1, (in.rows + chunk_rows - 1) / chunk_rows);
  const Tensor partial = at::zeros({num_chunks, dim}, w.options());
  float* partial_data = partial.mutable_data_ptr<float>();
  at::parallel_for(0, num_chunks, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> block(dim);
    Pieces scratch(in.is_narrow || grad.is_narrow || (residual && residual->is_narrow), 4, dim);
    for (int64_t i = begin * chunk_rows; i < std::min(end * chunk_rows, in.rows); ++i) {
      float* const out = dx.piece(i * dim, scratch[2]);
      kernels().rms_norm_backward(grad.row(i, scratch[0]), in.row(i, scratch[1]),
                                  w.const_data_ptr<float>(), rstd_data[i], out, block.data(), dim);
      if (residual) kernels().add(out, residual->row(i, scratch[3]), dim);
      dx.finish(i * dim, dim, out);
      const int64_t chunk = i / chunk_rows;
      const bool chunk_ends = (i + 1) % chunk_rows == 0 || i + 1 == in.rows;
      if (chunk_ends || (i % chunk_rows + 1) % kBlockRows == 0) {
        kernels().add(partial_data + chunk * dim, block.data(), dim);
        std::fill(block.begin(), block.end(), 0.0f);
      }
    }
  });
  for (int64_t step = 1; step < num_chunks; step *= 2) {
    for (int64_t chunk = 0; chunk + step < num_chunks; chunk += 2 * step) {
      kernels().add(partial_data + chunk * dim, partial_data + (chunk + step) * dim, dim);
    }
  }
  const Tensor dweight = partial[0].to(weight.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
  return {dx.tensor(), dweight};
}

}  // namespace

std::tuple<Tensor, Tensor> rms_norm_forward(const Tensor& x, const Tensor& weight, double eps) {
  if (x.scalar_type() == at::kDouble) return forward_in_double(x, weight, eps);
  const Rows in = rows_of(x);
  const Tensor w = floats_of(weight);
  const Result y(x.sizes(), x.scalar_type());
  const Tensor rstd = at::empty({in.rows}, w.options());
  float* rstd_data = rstd.mutable_data_ptr<float>();
  at::parallel_for(0, in.rows, grain(in.cols), [&](int64_t begin, int64_t end) {
    Pieces scratch(in.is_narrow, 2, in.cols);
    for (int64_t i = begin; i < end; ++i) {
      float* const out = y.piece(i * in.cols, scratch[1]);
      rstd_data[i] = kernels().rms_norm_forward(in.row(i, scratch[0]), w.const_data_ptr<float>(),
                                                out, in.cols, static_cast<float>(eps));
      y.finish(i * in.cols, in.cols, out);
    }
  });
  return {y.tensor(), rstd};
}

std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& dy, const Tensor& x,
                                             const Tensor& weight, const Tensor& rstd) {
  if (x.scalar_type() == at::kDouble) return backward_in_double(dy, x, weight, rstd);
  return backward_in_float(dy, x, weight, rstd, nullptr);
}

std::tuple<Tensor, Tensor, Tensor> add_rms_norm_forward(const Tensor& x, const Tensor& delta,
                                                        const Tensor& weight, double eps) {
  if (x.scalar_type() != at::kFloat) return composed::add_rms_norm_forward(x, delta, weight, eps);
  const Rows a = rows_of(x), b = rows_of(delta);
  const Tensor w = floats_of(weight);
  const Tensor sum = at::empty(x.sizes(), a.tensor.options());
  const Tensor y = at::empty(x.sizes(), a.tensor.options());
  const Tensor rstd = at::empty({a.rows}, a.tensor.options());
  float* sum_data = sum.mutable_data_ptr<float>();
  float* y_data = y.mutable_data_ptr<float>();
  float* rstd_data = rstd.mutable_data_ptr<float>();
  at::parallel_for(0, a.rows, grain(a.cols), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float* const row = sum_data + i * a.cols;
      kernels().sum(a.row(i, nullptr), b.row(i, nullptr), row, a.cols);
      rstd_data[i] = kernels().rms_norm_forward(row, w.const_data_ptr<float>(), y_data + i * a.cols,
                                                a.cols, static_cast<float>(eps));
    }
  });
  return {sum, y, rstd};
}

std::tuple<Tensor, Tensor> add_rms_norm_backward(const Tensor& dy, const Tensor& dsum,
                                                 const Tensor& sum, const Tensor& weight,
                                                 const Tensor& rstd) {
  if (sum.scalar_type() != at::kFloat)  // sums of other dtypes are rounded before the norm
    return composed::add_rms_norm_backward(dy, dsum, sum, weight, rstd);
  const Rows residual = rows_of(dsum);
  return backward_in_float(dy, sum, weight, rstd, &residual);
}

}  // namespace titan::ops::cpu
