// Head and cross entropy, computed in chunks of rows.
#include <limits>

#include <ATen/TensorOperators.h>
#include <titan/ops/chunked_loss.h>
#include <titan/ops/linear_cross_entropy.h>

#include "composite_ops.h"

namespace titan::composite {
namespace {

/// Bytes of fp32 logits that exist at a time: enough rows to keep a large GPU busy, and small
/// compared with its memory.
constexpr int64_t kLogitsBytes = int64_t{256} << 20;

/// Sum of the losses of some rows, in double. With `gradient` the logits become softmax − onehot,
/// or zero where the label is ignored.
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
  auto [loss, dx, dweight] =
      ops::run_chunks(x, weight, labels, ops::chunk_rows(x.size(0), weight.size(0), kLogitsBytes),
                      chunk_loss, needs_dx, needs_dweight);
  return {loss, dx, dweight};
}

}  // namespace titan::composite
