// Fused operations: shape checks, autograd, and their composed form for devices without a fused
// kernel.
#include <titan/ops/fused.h>

#include <ATen/TensorOperators.h>
#include <torch/library.h>

#include "autograd.h"
#include "signatures.h"

namespace titan::ops {
namespace {

std::tuple<Tensor, Tensor, Tensor> add_rms_norm_on_device(const Tensor& x, const Tensor& delta,
                                                          const Tensor& weight, double eps) {
  static const auto operation = find_operation<AddRmsNormForward>("titan::add_rms_norm_forward");
  BelowAutograd guard;
  return operation.call(x, delta, weight, eps);
}

struct AddRmsNorm : torch::autograd::Function<AddRmsNorm> {
  static variable_list forward(AutogradContext* ctx, const Tensor& x, const Tensor& delta,
                               const Tensor& weight, double eps) {
    auto [sum, y, rstd] = add_rms_norm_on_device(x, delta, weight, eps);
    ctx->save_for_backward({sum, weight, rstd});
    return {sum, y};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_differentiated_once("add_rms_norm");
    static const auto operation =
        find_operation<AddRmsNormBackward>("titan::add_rms_norm_backward");
    const variable_list saved = ctx->get_saved_variables();
    BelowAutograd guard;
    auto [dx, dweight] = operation.call(grads[1], grads[0], saved[0], saved[1], saved[2]);
    return {dx, dx, dweight, Tensor()};
  }
};

}  // namespace

AddedNorm add_rms_norm(const Tensor& x, const Tensor& delta, const Tensor& weight, double eps) {
  TITAN_CHECK(
      x.dim() >= 1 && weight.dim() == 1 && x.size(-1) == weight.size(0) &&
          x.sizes() == delta.sizes() && x.scalar_type() == delta.scalar_type(),
      config,
      "add_rms_norm: x and delta must be of one shape and dtype, and the weight of the size "
      "of their last dimension, got ",
      x.sizes(), " ", x.scalar_type(), ", ", delta.sizes(), " ", delta.scalar_type(),
      " and weight ", weight.sizes());
  if (records_graph({&x, &delta, &weight})) {
    const variable_list out = AddRmsNorm::apply(x, delta, weight, eps);
    return {out[0], out[1]};
  }
  auto [sum, y, rstd] = add_rms_norm_on_device(x, delta, weight, eps);
  return {sum, y};
}

void swiglu_backward_in_place(const Tensor& dout, const Tensor& gate, const Tensor& up) {
  TITAN_CHECK(dout.sizes() == gate.sizes() && up.sizes() == gate.sizes() && dout.is_contiguous() &&
                  gate.is_contiguous() && up.is_contiguous() &&
                  dout.scalar_type() == gate.scalar_type() &&
                  up.scalar_type() == gate.scalar_type(),
              config,
              "swiglu_backward_in_place: dout, gate and up must be contiguous, of one shape and "
              "dtype, got ",
              dout.sizes(), ", ", gate.sizes(), " and ", up.sizes());
  static const auto operation =
      find_operation<SwigluBackwardInPlace>("titan::swiglu_backward_in_place");
  BelowAutograd guard;
  operation.call(dout, gate, up);
}

void rope_into(const Tensor& q, const Tensor& k, const Tensor& cos, const Tensor& sin,
               const Tensor& positions, bool inverse, const Tensor& q_out, const Tensor& k_out) {
  for (const auto& [in, out] : {std::pair(&q, &q_out), std::pair(&k, &k_out)})
    TITAN_CHECK(in->dim() == 4 && out->sizes() == in->sizes() && out->stride(3) == 1 &&
                    out->stride(2) == out->size(3) && out->scalar_type() == in->scalar_type(),
                config, "rope_into: a result must be as its input with contiguous heads, got ",
                out->sizes(), " with strides ", out->strides(), " for ", in->sizes());
  static const auto operation = find_operation<RopeInto>("titan::rope_into");
  BelowAutograd guard;
  operation.call(q, k, cos, sin, positions.defined() ? std::optional(positions) : std::nullopt,
                 inverse, q_out, k_out);
}

namespace composed {

std::tuple<Tensor, Tensor, Tensor> add_rms_norm_forward(const Tensor& x, const Tensor& delta,
                                                        const Tensor& weight, double eps) {
  static const auto norm = find_operation<RmsNormForward>("titan::rms_norm_forward");
  const Tensor sum = x + delta;
  auto [y, rstd] = norm.call(sum, weight, eps);
  return {sum, y, rstd};
}

std::tuple<Tensor, Tensor> add_rms_norm_backward(const Tensor& dy, const Tensor& dsum,
                                                 const Tensor& sum, const Tensor& weight,
                                                 const Tensor& rstd) {
  static const auto norm = find_operation<RmsNormBackward>("titan::rms_norm_backward");
  auto [dx, dweight] = norm.call(dy, sum, weight, rstd);
  return {dx.add_(dsum), dweight};
}

void swiglu_backward_in_place(const Tensor& dout, const Tensor& gate, const Tensor& up) {
  static const auto forward = find_operation<SwigluForward>("titan::swiglu_forward");
  static const auto backward = find_operation<SwigluBackward>("titan::swiglu_backward");
  const Tensor product = forward.call(gate, up);
  auto [dgate, dup] = backward.call(dout, gate, up);
  dout.copy_(product);
  gate.copy_(dgate);
  up.copy_(dup);
}

void rope_into(const Tensor& q, const Tensor& k, const Tensor& cos, const Tensor& sin,
               const std::optional<Tensor>& positions, bool inverse, const Tensor& q_out,
               const Tensor& k_out) {
  static const auto rotate = find_operation<RopeRotate>("titan::rope_rotate");
  auto [q_rotated, k_rotated] = rotate.call(q, k, cos, sin, positions, inverse);
  q_out.copy_(q_rotated);
  k_out.copy_(k_rotated);
}

}  // namespace composed
}  // namespace titan::ops

TORCH_LIBRARY_IMPL(titan, CompositeExplicitAutograd, m) {
  namespace composed = titan::ops::composed;
  m.impl("add_rms_norm_forward", TORCH_FN(composed::add_rms_norm_forward));
  m.impl("add_rms_norm_backward", TORCH_FN(composed::add_rms_norm_backward));
  m.impl("swiglu_backward_in_place", TORCH_FN(composed::swiglu_backward_in_place));
  m.impl("rope_into", TORCH_FN(composed::rope_into));
}
