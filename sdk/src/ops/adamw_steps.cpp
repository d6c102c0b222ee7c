// The AdamW operations: calls the device's kernel if it has one, and locates a slice's random
// numbers.
#include <titan/ops/scaled_adamw_step.h>

#include <algorithm>
#include <bit>

#include "../nn/rounding_key.h"
#include "autograd.h"
#include "signatures.h"

namespace titan::ops {
namespace {

/// A slice that is a rectangle of a matrix: index of its first element in the whole, its columns,
/// and the columns of the whole.
struct Place {
  int64_t first, columns, whole_columns;
};

std::optional<Place> place_of(const std::vector<int64_t>& shape, const nn::Slice& slice) {
  // the columns are the last sharded dimension and all whole dimensions after it
  size_t cut = shape.size();
  int64_t behind = 1;
  while (cut > 0 && slice.sizes[cut - 1] == shape[cut - 1]) behind *= shape[--cut];
  if (cut == 0) return Place{0, std::max<int64_t>(1, behind), behind};
  --cut;
  const int64_t whole_columns = shape[cut] * behind;
  int64_t first = slice.offsets[cut] * behind, stride = whole_columns;
  for (size_t d = cut; d-- > 0;) {
    // rows are contiguous if all dimensions between them and the first one are whole
    if (d > 0 && slice.sizes[d] != shape[d]) return std::nullopt;
    first += slice.offsets[d] * stride;
    stride *= shape[d];
  }
  return Place{first, std::max<int64_t>(1, slice.sizes[cut] * behind), whole_columns};
}

/// The last arguments of the operations, which say how the weight is rounded.
struct Rounding {
  std::optional<int64_t> key;  // unset: to nearest
  Place place{0, 1, 1};
};

/// Unset if no kernel can round such a slice.
std::optional<Rounding> rounding_of(const std::optional<StochasticRounding>& asked) {
  if (!asked) return Rounding{};
  const std::optional<Place> place = place_of(asked->global_shape, asked->slice);
  if (!place) return std::nullopt;
  return Rounding{std::bit_cast<int64_t>(nn::rounding_key(asked->seed, asked->name)), *place};
}

const c10::TypedOperatorHandle<ScaledAdamWStep>& scaled_operation() {
  static const auto operation = find_operation<ScaledAdamWStep>("titan::scaled_adamw_step_");
  return operation;
}

}  // namespace

bool adamw_step(const Tensor& weight, const Tensor& gradient, const Tensor& exp_avg,
                const Tensor& exp_avg_sq, const Tensor& step, const AdamWNumbers& n,
                const std::optional<StochasticRounding>& rounding) {
  static const auto operation = find_operation<AdamWStep>("titan::adamw_step_");
  if (!operation.hasKernelForDispatchKey(weight.options().computeDispatchKey())) return false;
  const std::optional<Rounding> r = rounding_of(rounding);
  if (!r) return false;
  BelowAutograd guard;
  return operation.call(weight, gradient, exp_avg, exp_avg_sq, step, n.lr, n.beta1, n.beta2, n.eps,
                        n.weight_decay, r->key, r->place.first, r->place.columns,
                        r->place.whole_columns);
}

bool has_scaled_adamw_step(const Tensor& weight) {
  return scaled_operation().hasKernelForDispatchKey(weight.options().computeDispatchKey());
}

bool scaled_adamw_step(const Tensor& weight, const Tensor& gradient, const Tensor& gradient_scale,
                       const Tensor& exp_avg, const Tensor& exp_avg_sq, const Tensor& step,
                       const AdamWNumbers& n, const std::optional<StochasticRounding>& rounding) {
  if (!has_scaled_adamw_step(weight)) return false;
  const std::optional<Rounding> r = rounding_of(rounding);
  if (!r) return false;
  BelowAutograd guard;
  return scaled_operation().call(weight, gradient, gradient_scale, exp_avg, exp_avg_sq, step, n.lr,
                                 n.beta1, n.beta2, n.eps, n.weight_decay, r->key, r->place.first,
                                 r->place.columns, r->place.whole_columns);
}

}  // namespace titan::ops
