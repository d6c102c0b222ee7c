// swiglu: shape checks and autograd; the arithmetic is in the devices' implementations.
#include <titan/ops/swiglu.h>

#include "autograd.h"
#include "signatures.h"

namespace titan::ops {
namespace {

Tensor swiglu_on_device(const Tensor& gate, const Tensor& up) {
  static const auto operation = find_operation<SwigluForward>("titan::swiglu_forward");
  BelowAutograd guard;
  return operation.call(gate, up);
}

struct Swiglu : torch::autograd::Function<Swiglu> {
  static Tensor forward(AutogradContext* ctx, const Tensor& gate, const Tensor& up) {
    ctx->save_for_backward({gate, up});
    return swiglu_on_device(gate, up);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_differentiated_once("swiglu");
    static const auto operation = find_operation<SwigluBackward>("titan::swiglu_backward");
    const variable_list saved = ctx->get_saved_variables();
    BelowAutograd guard;
    auto [dgate, dup] = operation.call(grads[0], saved[0], saved[1]);
    return {dgate, dup};
  }
};

}  // namespace

Tensor swiglu(const Tensor& gate, const Tensor& up) {
  TITAN_CHECK(gate.sizes() == up.sizes() && gate.scalar_type() == up.scalar_type(), config,
              "swiglu: gate and up must have the same shape and dtype, got ", gate.sizes(), " ",
              gate.scalar_type(), " and ", up.sizes(), " ", up.scalar_type());
  if (records_graph({&gate, &up})) return Swiglu::apply(gate, up);
  return swiglu_on_device(gate, up);
}

}  // namespace titan::ops
