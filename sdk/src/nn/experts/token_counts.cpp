#include <titan/nn/token_counts.h>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <titan/error.h>
#include <titan/recompute.h>

namespace titan::nn {

void TokenCounts::add(const at::Tensor& counts, const Batch& batch) {
  if (!is_first_run()) return;
  const at::NoGradGuard no_grad;
  counts_ = counts_.defined() ? counts_ + counts : counts.detach();
  are_copied_ = batch.copies.num_ranks > 1;
}

at::Tensor TokenCounts::sum(const dist::Mesh& mesh) const {
  TITAN_ASSERT(counts_.defined(), "nothing was counted in this run");
  const at::Tensor total = counts_.clone(at::MemoryFormat::Contiguous);
  mesh.group("loss").all_reduce(total, dist::Reduce::sum).wait();
  if (!are_copied_) mesh.group("tp").all_reduce(total, dist::Reduce::sum).wait();
  mesh.replicas().all_reduce(total, dist::Reduce::sum).wait();
  return total;
}

}  // namespace titan::nn
