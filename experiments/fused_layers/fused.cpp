#include "fused.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <torch/csrc/autograd/custom_function.h>

namespace fused_layers {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Norm : torch::autograd::Function<Norm> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& weight, double eps) {
    const Tensor r = at::rsqrt(x.square().mean(-1, /*keepdim=*/true) + eps);
    ctx->save_for_backward({x, weight, r});
    return x * r * weight;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &r = saved[2], unit = x * r, g = grads[0] * saved[1];
    const Tensor dx = r * (g - unit * (g * unit).mean(-1, /*keepdim=*/true));
    return {dx, (grads[0] * unit).reshape({-1, x.size(-1)}).sum(at::IntArrayRef{0}), Tensor()};
  }
};

Tensor rows(const Tensor& x) {
  return x.reshape({-1, x.size(-1)});
}

struct FeedForward : torch::autograd::Function<FeedForward> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& w1, const Tensor& w2,
                        const Tensor& w3) {
    const Tensor gate = at::linear(x, w1), up = at::linear(x, w3);
    ctx->save_for_backward({x, gate, up, w1, w2, w3});
    return at::linear(at::silu(gate) * up, w2);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &gate = saved[1], &up = saved[2], &dy = grads[0];
    const Tensor s = at::sigmoid(gate), hidden = gate * s, dproduct = dy.matmul(saved[4]);
    const Tensor dgate = dproduct * up * (s + hidden * (1 - s)), dup = dproduct * hidden;
    return {dgate.matmul(saved[3]) + dup.matmul(saved[5]), rows(dgate).t().mm(rows(x)),
            rows(dy).t().mm(rows(hidden * up)), rows(dup).t().mm(rows(x))};
  }
};

}  // namespace

Tensor norm(const Tensor& x, const Tensor& weight, double eps) {
  return Norm::apply(x, weight, eps);
}

Tensor feed_forward(const Tensor& x, const Tensor& w1, const Tensor& w2, const Tensor& w3) {
  return FeedForward::apply(x, w1, w2, w3);
}

}  // namespace fused_layers
