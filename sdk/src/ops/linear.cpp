// linear: x · weightᵀ, with its backward in two halves. Its only own kernel is that for few rows on
// the CPU.
#include <titan/ops/linear.h>

#include <titan/ops/mm.h>
#include <titan/recompute.h>

#include "autograd.h"
#include "few_rows.h"

namespace titan::ops {
namespace {

using at::Tensor;

/// (..., n) as (rows, n); reshape's -1 is ambiguous for an empty batch.
Tensor as_matrix(const Tensor& x) {
  if (x.dim() == 2) return x;
  return x.reshape({c10::multiply_integers(x.sizes().slice(0, x.dim() - 1)), x.size(-1)});
}

/// x (..., n) · matrix (n, m) -> (..., m)
Tensor multiply(const Tensor& x, const Tensor& matrix) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = matrix.size(1);
  return ops::mm(as_matrix(x), matrix).view(shape);
}

/// x (..., in) · weight (out, in)ᵀ, or the product that a recomputation has kept.
Tensor product(const Tensor& x, const Tensor& weight) {
  BelowAutograd guard;
  const Operation operation{
      .kind = Operation::Kind::matmul,
      .flops = 2.0 * static_cast<double>(x.numel()) * static_cast<double>(weight.size(0)),
      .shape = {weight.size(1), weight.size(0)},
      .num_saved_inputs = 2};
  return keepable(operation, [&] { return multiply(x, weight.t()); });
}

struct Linear : torch::autograd::Function<Linear> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& weight) {
    ctx->save_for_backward({x, weight});
    return product(x, weight);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_differentiated_once("linear");
    const variable_list saved = ctx->get_saved_variables();
    variable_list out(2);
    if (ctx->needs_input_grad(0)) out[0] = linear_grad_input(grads[0], saved[1]);
    if (ctx->needs_input_grad(1)) out[1] = linear_grad_weight(grads[0], saved[0]);
    return out;
  }
};

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight) {
  TITAN_CHECK(x.dim() >= 1 && weight.dim() == 2 && x.size(-1) == weight.size(1), config,
              "linear: x (..., in) and weight (out, in) do not fit: ", x.sizes(), " and ",
              weight.sizes());
  TITAN_CHECK(x.scalar_type() == weight.scalar_type(), config,
              "linear: x and weight must have one dtype, got ", x.scalar_type(), " and ",
              weight.scalar_type());
  if (records_graph({&x, &weight})) return Linear::apply(x, weight);
  if (std::optional<Tensor> few = few_rows(x, weight)) return *few;
  return product(x, weight);
}

Tensor linear_grad_input(const Tensor& grad_out, const Tensor& weight) {
  BelowAutograd guard;
  return multiply(grad_out, weight);
}

Tensor linear_grad_weight(const Tensor& grad_out, const Tensor& x) {
  BelowAutograd guard;
  return ops::mm(as_matrix(grad_out).t(), as_matrix(x));
}

}  // namespace titan::ops
