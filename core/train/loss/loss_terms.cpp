#include "core/train/loss/loss_terms.h"

#include <ATen/TensorOperators.h>

namespace titan::core {

int64_t LossTerms::local(const StepBatches& batches) const {
  if (!loss_) return batches.num_local_valid_tokens;
  int64_t terms = 0;
  for (const Batch& batch : batches.microbatches) {
    if (batch.labels.is_meta()) return batches.num_local_valid_tokens;
    terms += loss_->num_terms(batch);
  }
  return terms;
}

int64_t LossTerms::global(const StepBatches& batches, const dist::Mesh& mesh,
                          c10::Device device) const {
  if (!loss_ || device.is_meta()) return batches.num_valid_tokens;
  return mesh.group("dp").all_reduce(local(batches), dist::Reduce::sum, device);
}

int64_t LossTerms::global_of_replicas(const StepBatches& batches, const dist::Mesh& mesh,
                                      c10::Device device) const {
  const int64_t terms = global(batches, mesh, device);
  if (!loss_ || device.is_meta()) return terms;
  return mesh.replicas().all_reduce(terms, dist::Reduce::sum, device);
}

RowsLoss LossPerTerm::of_sequences(const at::Tensor& log_likelihoods, const Batch& batch) {
  RowsLoss loss = loss_->of_sequences(log_likelihoods, batch);
  if (loss.sum.defined()) loss.sum = loss.sum * tokens_per_term_;
  return loss;
}

StepLoss TermCounter::forward_backward(const StepBatches& batches) {
  set_ratio(batches, terms_.global_of_replicas(batches, mesh_, device_));
  return inner().forward_backward(batches);
}

StepLoss TermCounter::forward(const StepBatches& batches) {
  set_ratio(batches, terms_.global(batches, mesh_, device_));
  return inner().forward(batches);
}

void TermCounter::set_ratio(const StepBatches& batches, int64_t terms) {
  loss_->set_tokens_per_term(
      terms == 0 ? 0 : static_cast<double>(batches.num_valid_tokens) / static_cast<double>(terms));
}

}  // namespace titan::core
