// Moves rows of tokens to experts and back: gathers in both directions, without scattered sums.
#include <titan/ops/token_rows.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "autograd.h"

namespace titan::ops {
namespace {

using at::Tensor;

Tensor inverse_of(const Tensor& order) {
  return at::empty_like(order).scatter_(0, order, at::arange(order.numel(), order.options()));
}

/// rows (N · k, D) by slot -> slot j of each token, (N, D).
Tensor slot(const Tensor& rows, int64_t k, int64_t j) {
  return rows.view({rows.size(0) / k, k, rows.size(1)}).select(1, j);
}

/// The number of slots per token; 1 if there are no tokens.
int64_t num_slots(const Tensor& order, int64_t tokens) {
  return tokens > 0 ? order.numel() / tokens : 1;
}

Tensor gather_tokens(const Tensor& x, const Tensor& order) {
  const int64_t k = num_slots(order, x.size(0));
  return rows_at(x, k == 1 ? order : order.div(k, "floor"));
}

struct RowsOfSlots : torch::autograd::Function<RowsOfSlots> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& order) {
    ctx->save_for_backward({order});
    ctx->saved_data["tokens"] = x.size(0);
    BelowAutograd guard;
    return gather_tokens(x, order);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_differentiated_once("rows_of_slots");
    const Tensor order = ctx->get_saved_variables()[0];
    const int64_t tokens = ctx->saved_data["tokens"].toInt();
    BelowAutograd guard;
    const Tensor by_slot = rows_at(grads[0], inverse_of(order));
    const int64_t k = num_slots(order, tokens);
    return {by_slot.view({tokens, k, by_slot.size(1)}).sum(1), Tensor()};
  }
};

struct InOrderOfSlots : torch::autograd::Function<InOrderOfSlots> {
  static Tensor forward(AutogradContext* ctx, const Tensor& rows, const Tensor& order) {
    ctx->save_for_backward({order});
    BelowAutograd guard;
    return rows_at(rows, inverse_of(order));
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_differentiated_once("in_order_of_slots");
    const Tensor order = ctx->get_saved_variables()[0];
    BelowAutograd guard;
    return {rows_at(grads[0], order), Tensor()};
  }
};

Tensor weighted_sum(const Tensor& rows, const Tensor& weights) {
  const int64_t k = weights.size(1);
  const at::ScalarType precise = weights.scalar_type();
  const Tensor by_slot = rows.contiguous();
  Tensor sum = slot(by_slot, k, 0).to(precise) * weights.narrow(1, 0, 1);
  for (int64_t j = 1; j < k; ++j)
    sum.addcmul_(slot(by_slot, k, j).to(precise), weights.narrow(1, j, 1));
  return sum.to(rows.scalar_type());
}

struct SumOfSlots : torch::autograd::Function<SumOfSlots> {
  static Tensor forward(AutogradContext* ctx, const Tensor& rows, const Tensor& weights) {
    ctx->save_for_backward({rows, weights});
    BelowAutograd guard;
    return weighted_sum(rows, weights);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_differentiated_once("sum_of_slots");
    const variable_list saved = ctx->get_saved_variables();
    BelowAutograd guard;
    const Tensor rows = saved[0].contiguous(), &weights = saved[1];
    const Tensor grad = grads[0].to(weights.scalar_type());
    const int64_t k = weights.size(1);
    variable_list out(2);
    if (ctx->needs_input_grad(0)) out[0] = at::empty(rows.sizes(), rows.options());
    if (ctx->needs_input_grad(1)) out[1] = at::empty(weights.sizes(), weights.options());
    for (int64_t j = 0; j < k; ++j) {
      if (out[0].defined()) slot(out[0], k, j).copy_(grad * weights.narrow(1, j, 1));
      if (out[1].defined())
        out[1].select(1, j).copy_((grad * slot(rows, k, j).to(weights.scalar_type())).sum(1));
    }
    return out;
  }
};

}  // namespace

Tensor rows_at(const Tensor& x, const Tensor& numbers) {
  if (!x.is_meta()) return x.index_select(0, numbers);
  if (x.dim() == 1) return x.gather(0, numbers);
  return x.gather(0, numbers.unsqueeze(1).expand({-1, x.size(1)}));
}

Tensor rows_of_slots(const Tensor& x, const Tensor& order) {
  TITAN_CHECK(x.dim() == 2 && order.dim() == 1 && order.scalar_type() == at::kLong &&
                  (x.size(0) > 0 ? order.numel() % x.size(0) : order.numel()) == 0,
              config, "rows_of_slots: x (N, D) and order (N * k) do not fit: ", x.sizes(), " and ",
              order.dtype(), " ", order.sizes());
  if (records_graph({&x})) return RowsOfSlots::apply(x, order);
  BelowAutograd guard;
  return gather_tokens(x, order);
}

Tensor in_order_of_slots(const Tensor& rows, const Tensor& order) {
  TITAN_CHECK(rows.dim() == 2 && order.dim() == 1 && order.scalar_type() == at::kLong &&
                  order.numel() == rows.size(0),
              config, "in_order_of_slots: rows (M, D) and order (M) do not fit: ", rows.sizes(),
              " and ", order.dtype(), " ", order.sizes());
  if (records_graph({&rows})) return InOrderOfSlots::apply(rows, order);
  BelowAutograd guard;
  return rows_at(rows, inverse_of(order));
}

Tensor sum_of_slots(const Tensor& rows, const Tensor& weights) {
  TITAN_CHECK(rows.dim() == 2 && weights.dim() == 2 && rows.size(0) == weights.numel() &&
                  weights.scalar_type() == c10::promoteTypes(rows.scalar_type(), at::kFloat),
              config,
              "sum_of_slots: rows (N * k, D) and weights (N, k) in fp32 or double do not "
              "fit: ",
              rows.dtype(), " ", rows.sizes(), " and ", weights.dtype(), " ", weights.sizes());
  if (records_graph({&rows, &weights})) return SumOfSlots::apply(rows, weights);
  BelowAutograd guard;
  return weighted_sum(rows, weights);
}

}  // namespace titan::ops
