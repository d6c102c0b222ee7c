// linear_cross_entropy: shape checks; the arithmetic is in the devices' implementations.
#include <titan/ops/linear_cross_entropy.h>

#include "autograd.h"
#include "signatures.h"

namespace titan::ops {
namespace {

LossAndGradients on_device(const Tensor& x, const Tensor& weight, const Tensor& labels,
                           bool needs_dx, bool needs_dweight) {
  static const auto operation = find_operation<LinearCrossEntropy>("titan::linear_cross_entropy");
  BelowAutograd guard;
  auto [loss, dx, dweight] = operation.call(x, weight, labels, needs_dx, needs_dweight);
  return {std::move(loss), std::move(dx), std::move(dweight)};
}

}  // namespace

Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& labels) {
  TITAN_CHECK(x.dim() == 2 && weight.dim() == 2 && x.size(1) == weight.size(1) &&
                  weight.size(0) > 0 && x.scalar_type() == weight.scalar_type(),
              config,
              "linear_cross_entropy: x (N, dim) and weight (V, dim) do not fit: ", x.sizes(), " ",
              x.scalar_type(), " and ", weight.sizes(), " ", weight.scalar_type());
  TITAN_CHECK(labels.dim() == 1 && labels.size(0) == x.size(0) && labels.scalar_type() == at::kLong,
              config, "linear_cross_entropy: labels must be int64 of shape (", x.size(0), "), got ",
              labels.sizes(), " ", labels.scalar_type());
  return with_ready_gradients(x, weight, "linear_cross_entropy",
                              [&](bool needs_dx, bool needs_dweight) {
                                return on_device(x, weight, labels, needs_dx, needs_dweight);
                              });
}

}  // namespace titan::ops
