// AdamW of one weight in one pass over memory, where a device brings it. Used by optimizers whose
// states have another dtype than the weights, or which round at random.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/export.h>
#include <titan/nn/init.h>

namespace titan::ops {

TITAN_OPTIONAL_HEADER(adamw_step);

struct AdamWNumbers {
  double lr, beta1, beta2, eps, weight_decay;
};

/// As nn::round_stochastically, which see, with the step of the update.
struct StochasticRounding {
  uint64_t seed;
  std::string_view name;
  const std::vector<int64_t>& global_shape;
  const nn::Slice& slice;
};

/// m <- m + (1-b1)(g - m), v <- b2 v + (1-b2) g², w <- w - lr·wd·w - lr / (1-b1^t) · m /
/// (sqrt(v) / sqrt(1-b2^t) + eps), all in place, in float32, each result rounded once: to nearest,
/// or w at random. `step`: t, a float32 scalar on the same device, which is not waited for.
///
/// False, and nothing is done, where the device has no such operation (the CPU has none) or it does
/// not take these tensors: dtypes, what is not contiguous, a slice that is no matrix of the whole.
TITAN_API bool adamw_step(const at::Tensor& weight, const at::Tensor& gradient,
                          const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
                          const at::Tensor& step, const AdamWNumbers& numbers,
                          const std::optional<StochasticRounding>& rounding);

}  // namespace titan::ops
