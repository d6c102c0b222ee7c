// adamw_step: whether the device has it, and where a slice's random numbers are.
#include <titan/ops/adamw_step.h>

#include <algorithm>
#include <bit>

#include "../nn/rounding_key.h"
#include "autograd.h"
#include "signatures.h"

namespace titan::ops {
namespace {

/// A slice as a matrix cut from a matrix, if it is one: index of its first element in the whole,
/// its columns, and those of the whole.
struct Place {
  int64_t first, columns, whole_columns;
};

std::optional<Place> place_of(const std::vector<int64_t>& shape, const nn::Slice& slice) {
  // the last dimension that is cut, and all that is whole behind it, are the columns
  size_t cut = shape.size();
  int64_t behind = 1;
  while (cut > 0 && slice.sizes[cut - 1] == shape[cut - 1]) behind *= shape[--cut];
  if (cut == 0) return Place{0, std::max<int64_t>(1, behind), behind};
  --cut;
  const int64_t whole_columns = shape[cut] * behind;
  int64_t first = slice.offsets[cut] * behind, stride = whole_columns;
  for (size_t d = cut; d-- > 0;) {
    // rows follow each other as long as what is between them and the first dimension is whole
    if (d > 0 && slice.sizes[d] != shape[d]) return std::nullopt;
    first += slice.offsets[d] * stride;
    stride *= shape[d];
  }
  return Place{first, std::max<int64_t>(1, slice.sizes[cut] * behind), whole_columns};
}

}  // namespace

bool adamw_step(const Tensor& weight, const Tensor& gradient, const Tensor& exp_avg,
                const Tensor& exp_avg_sq, const Tensor& step, const AdamWNumbers& n,
                const std::optional<StochasticRounding>& rounding) {
  static const auto operation = find_operation<AdamWStep>("titan::adamw_step_");
  if (!operation.hasKernelForDispatchKey(weight.options().computeDispatchKey())) return false;
  std::optional<Place> place;
  if (rounding) {
    place = place_of(rounding->global_shape, rounding->slice);
    if (!place) return false;
  }
  BelowAutograd guard;
  return operation.call(
      weight, gradient, exp_avg, exp_avg_sq, step, n.lr, n.beta1, n.beta2, n.eps, n.weight_decay,
      rounding
          ? std::optional(std::bit_cast<int64_t>(nn::rounding_key(rounding->seed, rounding->name)))
          : std::nullopt,
      place ? place->first : 0, place ? place->columns : 1, place ? place->whole_columns : 1);
}

}  // namespace titan::ops
