// rms_norm: shape checks and autograd; the arithmetic is in the devices' implementations.
#include <titan/ops/rms_norm.h>

#include "autograd.h"
#include "signatures.h"

namespace titan::ops {
namespace {

std::tuple<Tensor, Tensor> rms_norm_on_device(const Tensor& x, const Tensor& weight, double eps) {
  static const auto operation = find_operation<RmsNormForward>("titan::rms_norm_forward");
  BelowAutograd guard;
  return operation.call(x, weight, eps);
}

struct RmsNorm : torch::autograd::Function<RmsNorm> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& weight, double eps) {
    auto [y, rstd] = rms_norm_on_device(x, weight, eps);
    ctx->save_for_backward({x, weight, rstd});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_differentiated_once("rms_norm");
    static const auto operation = find_operation<RmsNormBackward>("titan::rms_norm_backward");
    const variable_list saved = ctx->get_saved_variables();
    BelowAutograd guard;
    auto [dx, dweight] = operation.call(grads[0], saved[0], saved[1], saved[2]);
    return {dx, dweight, Tensor()};
  }
};

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  TITAN_CHECK(x.dim() >= 1 && weight.dim() == 1 && x.size(-1) == weight.size(0), config,
              "rms_norm: the weight must have the size of the last dimension, got x ", x.sizes(),
              " and weight ", weight.sizes());
  if (records_graph({&x, &weight})) return RmsNorm::apply(x, weight, eps);
  return std::get<0>(rms_norm_on_device(x, weight, eps));
}

}  // namespace titan::ops
