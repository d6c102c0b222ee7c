// linear_cross_entropy on the CPU: the loss and gradient of a chunk.
#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/scalar_tensor.h>
#include <titan/ops/linear_cross_entropy.h>

#include "../chunks.h"
#include "../kernels/kernels.h"
#include "../signatures.h"
#include "rows.h"

namespace titan::ops::cpu {
namespace {

/// Loss of one row; with `gradient` the row becomes softmax − onehot.
double row_loss(float* logits, int64_t n, int64_t label, bool gradient) {
  const float at_label = logits[label];
  const RowStatistics row =
      gradient ? kernels().softmax_in_place(logits, n) : kernels().softmax_statistics(logits, n);
  if (gradient) logits[label] -= 1;
  return static_cast<double>(row.max) - at_label + std::log(static_cast<double>(row.sum_exp));
}

double row_loss(double* logits, int64_t n, int64_t label, bool gradient) {
  const double at_label = logits[label];
  const double max = *std::max_element(logits, logits + n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(logits[i] - max);
  if (gradient) {
    for (int64_t i = 0; i < n; ++i) logits[i] = std::exp(logits[i] - max) / sum;
    logits[label] -= 1;
  }
  return max - at_label + std::log(sum);
}

/// Sums in the order of the rows.
template <class Real>
double chunk_loss(const Tensor& logits, const int64_t* labels, bool gradient) {
  const int64_t rows = logits.size(0), n = logits.size(1);
  Real* data = logits.mutable_data_ptr<Real>();
  std::vector<double> losses(rows, 0.0);
  at::parallel_for(0, rows, grain(n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (labels[i] != kIgnoredLabel) {
        losses[i] = row_loss(data + i * n, n, labels[i], gradient);
      } else if (gradient) {
        std::fill_n(data + i * n, n, Real{0});
      }
    }
  });
  double sum = 0;
  for (const double loss : losses) sum += loss;
  return sum;
}

/// As ChunkLoss.
Tensor cross_entropy(const Tensor& logits, const Tensor& labels, bool gradient) {
  const int64_t* label = labels.const_data_ptr<int64_t>();
  const double loss = logits.scalar_type() == at::kDouble
                          ? chunk_loss<double>(logits, label, gradient)
                          : chunk_loss<float>(logits, label, gradient);
  return at::scalar_tensor(loss, logits.options().dtype(at::kDouble));
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> linear_cross_entropy(const Tensor& x, const Tensor& weight,
                                                        const Tensor& labels, bool needs_dx,
                                                        bool needs_dweight) {
  check_labels(labels, weight.size(0));
  auto [loss, dx, dweight] =
      run_chunks(x, weight, labels.contiguous(), logits_chunk_rows(x.size(0), weight.size(0)),
                 cross_entropy, needs_dx, needs_dweight);
  return {loss, dx, dweight};
}

}  // namespace titan::ops::cpu
