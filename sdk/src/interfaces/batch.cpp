#include <titan/batch.h>

namespace titan {

Batch Batch::rows(int64_t first, int64_t count) const {
  Batch part = *this;
  for (at::Tensor* tensor : {&part.tokens, &part.labels, &part.positions, &part.documents, &part.reference})
    if (tensor->defined()) *tensor = tensor->narrow(0, first, count);
  return part;
}

Batch Batch::to(c10::Device device) const {
  Batch moved = *this;
  for (at::Tensor* tensor : {&moved.tokens, &moved.labels, &moved.positions, &moved.reference, &moved.logits_of})
    if (tensor->defined()) *tensor = tensor->to(device, /*non_blocking=*/true);
  return moved;
}

}  // namespace titan
