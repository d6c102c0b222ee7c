#include "gradient_sum.h"

#include <deque>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

namespace titan::replicas {
namespace {

struct Bucket {
  std::vector<at::Tensor> gradients;
  int64_t num_elements = 0;
  at::Tensor flat;
  dist::Pending sum;

  void start(const dist::Group& group) {
    flat = at::empty({num_elements}, gradients.front().options());
    int64_t offset = 0;
    for (const at::Tensor& gradient : gradients) {
      flat.narrow(0, offset, gradient.numel()).view(gradient.sizes()).copy_(gradient);
      offset += gradient.numel();
    }
    sum = group.all_reduce(flat, dist::Reduce::sum);
  }
  void finish() {
    sum.wait();
    int64_t offset = 0;
    for (const at::Tensor& gradient : gradients) {
      gradient.copy_(flat.narrow(0, offset, gradient.numel()).view(gradient.sizes()));
      offset += gradient.numel();
    }
  }
};

/// Where data parallelism has left the sum over the group's own ranks.
at::Tensor gradient_of(const nn::Parameter& parameter) {
  at::Tensor gradient = parameter.grad();
  if (gradient.defined()) return gradient;
  parameter.shard().mutable_grad() = at::zeros_like(parameter.shard());
  return parameter.shard().grad();
}

}  // namespace

void sum_gradients(const std::vector<nn::Parameter*>& parameters, const dist::Group& group,
                   int64_t bucket_bytes) {
  if (group.size() == 1) return;
  const at::NoGradGuard no_grad;
  std::deque<Bucket> buckets;
  for (nn::Parameter* parameter : parameters) {
    if (parameter->is_frozen() || parameter->is_state()) continue;
    const at::Tensor gradient = gradient_of(*parameter);
    const int64_t element = gradient.element_size();
    if (buckets.empty() ||
        buckets.back().gradients.front().scalar_type() != gradient.scalar_type() ||
        (buckets.back().num_elements + gradient.numel()) * element > bucket_bytes) {
      if (!buckets.empty()) buckets.back().start(group);
      buckets.emplace_back();
    }
    buckets.back().gradients.push_back(gradient);
    buckets.back().num_elements += gradient.numel();
  }
  if (!buckets.empty()) buckets.back().start(group);
  for (Bucket& bucket : buckets) bucket.finish();
}

}  // namespace titan::replicas
