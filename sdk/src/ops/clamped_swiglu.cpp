// clamped_swiglu: composed of ATen's operations, with a backward that saves only the inputs.
#include <titan/ops/clamped_swiglu.h>

#include <ATen/TensorOperators.h>

#include "autograd.h"

namespace titan::ops {
namespace {

using at::Tensor;

/// Values for forward and backward, in the dtype of the computation.
struct Gated {
  Tensor g, u, sigmoid;

  Gated(const Tensor& gate, const Tensor& up, double limit, double alpha) {
    const at::ScalarType type = c10::promoteTypes(gate.scalar_type(), at::kFloat);
    g = gate.to(type).clamp_max(limit);
    u = up.to(type).clamp(-limit, limit);
    sigmoid = (g * alpha).sigmoid();
  }
};

Tensor gated(const Tensor& gate, const Tensor& up, double limit, double alpha) {
  const Gated by(gate, up, limit, alpha);
  return (by.g * by.sigmoid * (by.u + 1)).to(gate.scalar_type());
}

struct ClampedSwiglu : torch::autograd::Function<ClampedSwiglu> {
  static Tensor forward(AutogradContext* ctx, const Tensor& gate, const Tensor& up, double limit,
                        double alpha) {
    ctx->save_for_backward({gate, up});
    ctx->saved_data["limit"] = limit;
    ctx->saved_data["alpha"] = alpha;
    BelowAutograd guard;
    return gated(gate, up, limit, alpha);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_differentiated_once("clamped_swiglu");
    const variable_list saved = ctx->get_saved_variables();
    const double limit = ctx->saved_data["limit"].toDouble(),
                 alpha = ctx->saved_data["alpha"].toDouble();
    BelowAutograd guard;
    const Tensor &gate = saved[0], &up = saved[1];
    const Gated by(gate, up, limit, alpha);
    const at::ScalarType type = by.g.scalar_type();
    const Tensor grad = grads[0].to(type), silu = by.g * by.sigmoid;
    const Tensor slope = by.sigmoid + silu * (1 - by.sigmoid) * alpha;
    const Tensor dgate = grad * (by.u + 1) * slope * gate.le(limit).to(type);
    const Tensor dup = grad * silu * up.le(limit).to(type) * up.ge(-limit).to(type);
    return {dgate.to(gate.scalar_type()), dup.to(up.scalar_type()), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor clamped_swiglu(const Tensor& gate, const Tensor& up, const ClampedSwigluOptions& options) {
  TITAN_CHECK(gate.sizes() == up.sizes() && gate.scalar_type() == up.scalar_type(), config,
              "clamped_swiglu: gate and up must have one shape and dtype, got ", gate.sizes(), " ",
              gate.scalar_type(), " and ", up.sizes(), " ", up.scalar_type());
  if (records_graph({&gate, &up}))
    return ClampedSwiglu::apply(gate, up, options.limit, options.alpha);
  BelowAutograd guard;
  return gated(gate, up, options.limit, options.alpha);
}

}  // namespace titan::ops
