#include "quantize.h"

#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

namespace ternary {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// round(x / unit) within [low, high], times unit.
struct Rounded : torch::autograd::Function<Rounded> {
  static Tensor forward(AutogradContext*, const Tensor& x, const Tensor& unit, double low, double high) {
    const Tensor wide = x.to(c10::promoteTypes(x.scalar_type(), at::kFloat));
    return (wide / unit).round_().clamp_(low, high).mul_(unit).to(x.scalar_type());
  }
  static variable_list backward(AutogradContext*, const variable_list& grads) {
    return {grads[0], Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor ternary(const Tensor& x, const Tensor& scale) {
  return Rounded::apply(x, scale.clamp_min(kLeast), -1.0, 1.0);
}

Tensor eight_bits(const Tensor& x, const Tensor& maximum) {
  return Rounded::apply(x, maximum.clamp_min(kLeast) / 127, -128.0, 127.0);
}

}  // namespace ternary
