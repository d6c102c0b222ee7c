// linear_cross_entropy on the CPU: chunk by chunk of rows; a chunk's logits turn into their own
// gradient in place.
#include <cmath>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/scalar_tensor.h>
#include <titan/error.h>
#include <titan/ops/linear_cross_entropy.h>

#include "../chunks.h"
#include "../kernels/kernels.h"
#include "../signatures.h"
#include "rows.h"

namespace titan::ops::cpu {
namespace {

void check_labels(const Tensor& labels, int64_t vocab_size) {
  const int64_t* l = labels.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < labels.size(0); ++i) {
    TITAN_CHECK((l[i] >= 0 && l[i] < vocab_size) || l[i] == kIgnoredLabel, data,
                "linear_cross_entropy: label ", l[i], " of token ", i,
                " is outside of the vocabulary of ", vocab_size, " (", kIgnoredLabel,
                " marks a token that is ignored)");
  }
}

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

/// Loss of a chunk, summed in the order of its rows.
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

}  // namespace

std::tuple<Tensor, Tensor, Tensor> linear_cross_entropy(const Tensor& x, const Tensor& weight,
                                                        const Tensor& labels, bool needs_dx,
                                                        bool needs_dweight) {
  const int64_t num_rows = x.size(0), vocab_size = weight.size(0);
  const at::ScalarType type = x.scalar_type();
  const at::ScalarType wide = type == at::kDouble ? at::kDouble : at::kFloat;
  const bool gradient = needs_dx || needs_dweight;
  const Tensor all_labels = labels.contiguous();
  check_labels(all_labels, vocab_size);

  Tensor dx, dweight;
  if (needs_dx) dx = at::empty(x.sizes(), x.options());
  if (needs_dweight) dweight = at::empty(weight.sizes(), weight.options().dtype(wide));
  if (needs_dweight && num_rows == 0) dweight.zero_();

  const int64_t chunk_rows = logits_chunk_rows(num_rows, vocab_size);
  const Tensor buffer = at::empty({chunk_rows, vocab_size}, x.options());
  double loss = 0;
  for (int64_t first = 0; first < num_rows; first += chunk_rows) {
    const int64_t rows = std::min(chunk_rows, num_rows - first);
    const Tensor in = x.narrow(0, first, rows);
    Tensor product = buffer.narrow(0, 0, rows);
    at::mm_out(product, in, weight.t());
    const Tensor logits = product.to(wide);
    const int64_t* chunk_labels = all_labels.const_data_ptr<int64_t>() + first;
    loss += wide == at::kDouble ? chunk_loss<double>(logits, chunk_labels, gradient)
                                : chunk_loss<float>(logits, chunk_labels, gradient);
    if (!gradient) continue;
    const Tensor dlogits = type == wide ? logits : product.copy_(logits);
    if (needs_dx) {
      Tensor out = dx.narrow(0, first, rows);
      at::mm_out(out, dlogits, weight);
    }
    if (!needs_dweight) continue;
    if (type != wide) {
      const Tensor share = at::mm(dlogits.t(), in);
      first == 0 ? dweight.copy_(share) : dweight.add_(share);
    } else if (first == 0) {
      at::mm_out(dweight, dlogits.t(), in);
    } else {
      dweight.addmm_(dlogits.t(), in);
    }
  }
  if (needs_dweight) dweight = dweight.to(type);
  return {at::scalar_tensor(loss, x.options().dtype(wide)), dx, dweight};
}

}  // namespace titan::ops::cpu
