// The fused operations at both ends of a model: embedding, and head with cross entropy.
#include <algorithm>

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/zeros.h>
#include <titan/ops/fused_head.h>

#include "cross_entropy.h"
#include "embedding.h"
#include "fused_ops.h"
#include "launch.h"
#include "spans.h"

namespace titan::cuda::fused {
namespace {

/// sum + a · b; for the first chunk, whose `sum` is uninitialized, a · b. `sum` is fp32.
void add_product(Tensor& sum, const Tensor& a, const Tensor& b, bool is_first) {
  if (a.scalar_type() == at::kFloat) {
    is_first ? at::mm_out(sum, a, b) : sum.addmm_(a, b);
  } else if (sum.is_cuda()) {
    // one product that reads and writes fp32, which ATen has for CUDA only
    at::addmm_out(sum, sum, a, b, at::kFloat, /*beta=*/is_first ? 0 : 1, /*alpha=*/1);
  } else {
    const Tensor share = at::mm(a, b);
    is_first ? sum.copy_(share) : sum.add_(share);
  }
}

}  // namespace

Tensor embedding_backward(const Tensor& dout_in, const Tensor& tokens, int64_t num_rows) {
  const Tensor dout = dout_in.contiguous();
  const int64_t dim = dout.size(-1), count = tokens.numel();
  const Tensor dweight = at::zeros({num_rows, dim}, dout.options());
  const auto [sorted, order] =
      at::sort(tokens.reshape({-1}), /*stable=*/true, /*dim=*/0, /*descending=*/false);
  const bool is_aligned = has_aligned_rows(dout, dim);
  with_type(dout.scalar_type(), [&](auto type) {
    using T = decltype(type);
    const int64_t tiles = blocks_for(dim, EmbeddingBackward<T>::columns(is_aligned));
    launch(EmbeddingBackward<T>{.dout = span_of<const T>(dout),
                                .sorted = span_of<const int64_t>(sorted),
                                .order = span_of<const int64_t>(order),
                                .dweight = span_of<T>(dweight),
                                .tokens = count,
                                .dim = dim,
                                .num_rows = num_rows,
                                .tiles_per_row = tiles,
                                .is_aligned = is_aligned},
           count * tiles);
  });
  return dweight;
}

Tensor cross_entropy(const Tensor& logits, const Tensor& labels_in, bool gradient) {
  TITAN_ASSERT(logits.is_contiguous() && has_aligned_rows(logits, 0), "logits of a chunk of rows");
  const Tensor labels = labels_in.contiguous();
  const Tensor losses = at::empty({logits.size(0)}, logits.options().dtype(at::kFloat));
  with_type(logits.scalar_type(), [&](auto type) {
    using T = decltype(type);
    launch(CrossEntropy<T>{.logits = span_of<T>(logits),
                           .labels = span_of<const int64_t>(labels),
                           .losses = span_of<float>(losses),
                           .words = logits.size(1),
                           .ignored = ops::kIgnoredLabel,
                           .wants_gradient = gradient},
           logits.size(0));
  });
  return losses;
}

std::tuple<Tensor, Tensor, Tensor> linear_cross_entropy(const Tensor& x, const Tensor& weight,
                                                        const Tensor& labels, bool needs_dx,
                                                        bool needs_dweight) {
  return linear_cross_entropy_by_rows(ops::fused_head_rows(x, weight), x, weight, labels, needs_dx,
                                      needs_dweight);
}

// As ops::run_chunks, which copies chunks of narrow dtypes to fp32 and back. Here the gradient
// replaces the logits in place.
std::tuple<Tensor, Tensor, Tensor> linear_cross_entropy_by_rows(int64_t rows_per_chunk,
                                                                const Tensor& x,
                                                                const Tensor& weight,
                                                                const Tensor& labels, bool needs_dx,
                                                                bool needs_dweight) {
  const int64_t num_rows = x.size(0), words = weight.size(0);
  const bool is_whole = rows_per_chunk >= num_rows;  // then dweight is one product
  Tensor dx, dweight;
  if (needs_dx) dx = at::empty(x.sizes(), x.options());
  if (needs_dweight) {
    const auto options = weight.options().dtype(is_whole ? weight.scalar_type() : at::kFloat);
    dweight =
        num_rows == 0 ? at::zeros(weight.sizes(), options) : at::empty(weight.sizes(), options);
  }
  Tensor buffer = at::empty({std::min(rows_per_chunk, num_rows), words}, x.options());
  const Tensor loss = at::zeros({}, x.options().dtype(at::kDouble));
  for (int64_t first = 0; first < num_rows; first += rows_per_chunk) {
    const int64_t rows = std::min(rows_per_chunk, num_rows - first);
    const Tensor in = x.narrow(0, first, rows);
    Tensor logits = buffer.narrow(0, 0, rows);
    at::mm_out(logits, in, weight.t());
    loss.add_(cross_entropy(logits, labels.narrow(0, first, rows), needs_dx || needs_dweight)
                  .sum(at::kDouble));
    if (needs_dx) {
      Tensor out = dx.narrow(0, first, rows);
      at::mm_out(out, logits, weight);
    }
    if (!needs_dweight) continue;
    if (is_whole)
      at::mm_out(dweight, logits.t(), in);
    else
      add_product(dweight, logits.t(), in, first == 0);
  }
  buffer.reset();  // before the sum is copied to the weight's dtype
  if (needs_dweight) dweight = dweight.to(weight.scalar_type());
  return {loss.to(at::kFloat), dx, dweight};
}

}  // namespace titan::cuda::fused
