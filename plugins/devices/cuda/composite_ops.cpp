#include "composite_ops.h"

#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/sigmoid.h>

namespace titan::composite {
namespace {

Tensor widened(const Tensor& x) {
  return x.to(wide_type(x));
}

/// One number per row, shaped to multiply the rows of x.
Tensor column(const Tensor& per_row, const Tensor& x) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = 1;
  return per_row.view(shape);
}

/// x (B, S, heads, hd) rotated by cos and sin (B or 1, S, 1, hd/2).
Tensor turned(const Tensor& x, const Tensor& cos, const Tensor& sin) {
  const int64_t half = x.size(3) / 2;
  const Tensor wide = widened(x);
  const Tensor a = wide.narrow(3, 0, half), b = wide.narrow(3, half, half);
  return at::cat({a * cos - b * sin, b * cos + a * sin}, 3).to(x.scalar_type()).contiguous();
}

}  // namespace

std::tuple<Tensor, Tensor> rms_norm_forward(const Tensor& x, const Tensor& weight, double eps) {
  const Tensor wide = widened(x);
  const Tensor rstd = wide.square().mean(-1, /*keepdim=*/true).add_(eps).rsqrt_();
  const Tensor y = wide * rstd * weight.to(wide.scalar_type());
  return {y.to(x.scalar_type()).contiguous(), rstd.reshape({rstd.numel()})};
}

std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& dy, const Tensor& x,
                                             const Tensor& weight, const Tensor& rstd) {
  const Tensor scale = column(rstd, x);
  const Tensor normalised = widened(x) * scale;
  const Tensor grad = dy.to(normalised.scalar_type());
  const Tensor dweight = (grad * normalised).reshape({rstd.numel(), x.size(-1)}).sum(0);
  const Tensor g = grad * weight.to(normalised.scalar_type());
  const Tensor dx = (g - normalised * (g * normalised).mean(-1, /*keepdim=*/true)).mul_(scale);
  return {dx.to(x.scalar_type()).contiguous(), dweight.to(weight.scalar_type())};
}

std::tuple<Tensor, Tensor, Tensor> add_rms_norm_forward(const Tensor& x, const Tensor& residual,
                                                        const Tensor& weight, double eps) {
  const Tensor sum = (x + residual).contiguous();
  auto [y, rstd] = rms_norm_forward(sum, weight, eps);
  return {sum, y, rstd};
}

std::tuple<Tensor, Tensor> add_rms_norm_backward(const Tensor& dy, const Tensor& dsum,
                                                 const Tensor& sum, const Tensor& weight,
                                                 const Tensor& rstd) {
  auto [dx, dweight] = rms_norm_backward(dy, sum, weight, rstd);
  return {dx.add_(dsum), dweight};
}

Tensor swiglu_forward(const Tensor& gate, const Tensor& up) {
  const Tensor g = widened(gate);
  return (g * at::sigmoid(g)).mul_(widened(up)).to(gate.scalar_type()).contiguous();
}

std::tuple<Tensor, Tensor> swiglu_backward(const Tensor& dout, const Tensor& gate,
                                           const Tensor& up) {
  const Tensor d = widened(dout), g = widened(gate);
  const Tensor s = at::sigmoid(g);
  const Tensor dgate = d * widened(up) * s * (1 + g * (1 - s));
  const Tensor dup = d * (g * s);
  return {dgate.to(gate.scalar_type()).contiguous(), dup.to(up.scalar_type()).contiguous()};
}

void swiglu_backward_in_place(const Tensor& dout, const Tensor& gate, const Tensor& up) {
  const Tensor product = swiglu_forward(gate, up);
  const auto [dgate, dup] = swiglu_backward(dout, gate, up);
  dout.copy_(product);
  gate.copy_(dgate);
  up.copy_(dup);
}

std::tuple<Tensor, Tensor> rope_rotate(const Tensor& q, const Tensor& k, const Tensor& cos,
                                       const Tensor& sin, const std::optional<Tensor>& positions,
                                       bool inverse) {
  const auto pick = [&](const Tensor& table) {
    const int64_t half = table.size(1);
    if (!positions) return table.narrow(0, 0, q.size(1)).view({1, q.size(1), 1, half});
    return at::index_select(table, 0, positions->reshape({-1}))
        .view({positions->size(0), q.size(1), 1, half});
  };
  const Tensor c = pick(cos.contiguous());
  Tensor s = pick(sin.contiguous());
  if (inverse) s = s.neg();
  return {turned(q, c, s), turned(k, c, s)};
}

void rope_into(const Tensor& q, const Tensor& k, const Tensor& cos, const Tensor& sin,
               const std::optional<Tensor>& positions, bool inverse, const Tensor& q_out,
               const Tensor& k_out) {
  const auto [q_turned, k_turned] = rope_rotate(q, k, cos, sin, positions, inverse);
  q_out.copy_(q_turned);
  k_out.copy_(k_turned);
}

Tensor embedding_forward(const Tensor& weight, const Tensor& tokens) {
  std::vector<int64_t> shape = tokens.sizes().vec();
  shape.push_back(weight.size(1));
  return at::index_select(weight, 0, tokens.reshape({-1})).view(shape);
}

Tensor embedding_backward(const Tensor& dout, const Tensor& tokens, int64_t num_rows) {
  const Tensor dweight =
      at::embedding_dense_backward(widened(dout).contiguous(), tokens.contiguous(), num_rows,
                                   /*padding_idx=*/-1, /*scale_grad_by_freq=*/false);
  return dweight.to(dout.scalar_type());
}

}  // namespace titan::composite
