#include "sum_chunks.h"

#include <ATen/ops/sum.h>

namespace titan::cpu {

void sum_chunks(const at::Tensor& out, const at::Tensor& chunks) {
  at::Tensor total = out.view({-1});
  if (at::isReducedFloatingType(out.scalar_type())) {
    total.copy_(chunks.to(at::kFloat).sum(0));
    return;
  }
  total.copy_(chunks[0]);
  for (int64_t i = 1; i < chunks.size(0); ++i) total.add_(chunks[i]);
}

}  // namespace titan::cpu
