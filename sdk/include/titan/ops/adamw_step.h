// AdamW of one weight in one pass over memory, on devices with such an operation. Used by
// optimizers whose states have a different dtype from the weights, or that round stochastically.
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

/// The arguments of nn::round_stochastically, except the step, which is the update's.
struct StochasticRounding {
  uint64_t seed;
  std::string_view name;
  const std::vector<int64_t>& global_shape;
  const nn::Slice& slice;
};

/// m <- m + (1-b1)(g - m), v <- b2 v + (1-b2) g², w <- w - lr·wd·w - lr / (1-b1^t) · m / (sqrt(v) /
/// sqrt(1-b2^t) + eps), all in place, in float32, each result rounded once: to nearest, or w
/// stochastically. `step`: t, a float32 scalar on the same device; the host does not wait for it.
///
/// Returns false, and does nothing, if the device has no such operation (the CPU has none) or does
/// not support these tensors: their dtypes, non-contiguous tensors, or a slice that is not a matrix
/// of the whole tensor.
TITAN_API bool adamw_step(const at::Tensor& weight, const at::Tensor& gradient,
                          const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
                          const at::Tensor& step, const AdamWNumbers& numbers,
                          const std::optional<StochasticRounding>& rounding);

}  // namespace titan::ops
