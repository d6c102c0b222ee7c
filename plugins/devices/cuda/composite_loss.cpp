// Head and cross entropy chunk by chunk of rows: a chunk's logits turn into their own gradient in
// place.
#include <algorithm>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <titan/ops/linear_cross_entropy.h>

#include "composite_ops.h"

namespace titan::composite {
namespace {

/// Logits that exist at a time, in bytes of fp32: enough rows to keep a large GPU busy, little
/// beside its memory.
constexpr int64_t kLogitsBytes = int64_t{256} << 20;
constexpr int64_t kMinChunkRows = 128;

/// Equal but for the last, a function of the shapes alone: sums keep their order.
int64_t chunk_rows(int64_t num_rows, int64_t vocab_size) {
  const int64_t most = std::max(kMinChunkRows, kLogitsBytes / (4 * vocab_size));
  const int64_t num_chunks = std::max<int64_t>(1, (num_rows + most - 1) / most);
  return std::max<int64_t>(1, (num_rows + num_chunks - 1) / num_chunks);
}

/// Sum of the losses of some rows, in double; with `gradient` the logits become softmax − onehot,
/// and zero where the label is ignored.
Tensor chunk_loss(const Tensor& logits, const Tensor& labels, bool gradient) {
  const Tensor ignored = labels.eq(ops::kIgnoredLabel);
  const Tensor index = labels.masked_fill(ignored, 0).unsqueeze(1);
  const Tensor logsumexp = logits.logsumexp(1);
  const Tensor losses = (logsumexp - logits.gather(1, index).squeeze(1)).masked_fill_(ignored, 0);
  const Tensor sum = losses.sum(at::kDouble);
  if (gradient) {
    const Tensor shift = logsumexp.masked_fill(ignored, std::numeric_limits<double>::infinity());
    logits.sub_(shift.unsqueeze(1)).exp_();
    const Tensor is_counted = ignored.logical_not().to(logits.scalar_type()).unsqueeze(1);
    logits.scatter_(1, index, logits.gather(1, index) - is_counted);
  }
  return sum;
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> linear_cross_entropy(const Tensor& x, const Tensor& weight,
                                                        const Tensor& labels, bool needs_dx,
                                                        bool needs_dweight) {
  const int64_t num_rows = x.size(0);
  const at::ScalarType type = x.scalar_type(), wide = wide_type(x);
  const bool gradient = needs_dx || needs_dweight;
  Tensor dx, dweight;
  if (needs_dx) dx = at::empty(x.sizes(), x.options());
  if (needs_dweight) dweight = at::zeros(weight.sizes(), weight.options().dtype(wide));

  Tensor loss = at::zeros({}, x.options().dtype(at::kDouble));
  const int64_t step = chunk_rows(num_rows, weight.size(0));
  for (int64_t first = 0; first < num_rows; first += step) {
    const int64_t rows = std::min(step, num_rows - first);
    const Tensor in = x.narrow(0, first, rows);
    const Tensor logits = at::mm(in, weight.t()).to(wide);
    loss += chunk_loss(logits, labels.narrow(0, first, rows), gradient);
    if (!gradient) continue;
    const Tensor dlogits = logits.to(type);
    if (needs_dx) {
      Tensor out = dx.narrow(0, first, rows);
      at::mm_out(out, dlogits, weight);
    }
    if (!needs_dweight) continue;
    if (type == wide)
      dweight.addmm_(dlogits.t(), in);
    else
      dweight.add_(at::mm(dlogits.t(), in));
  }
  if (needs_dweight) dweight = dweight.to(type);
  return {loss.to(wide), dx, dweight};
}

}  // namespace titan::composite
