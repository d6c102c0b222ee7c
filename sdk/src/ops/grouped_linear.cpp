// grouped_linear: shape checks and autograd around the products of the dispatcher.
#include <titan/ops/grouped_linear.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include "autograd.h"
#include "signatures.h"

namespace titan::ops {
namespace {

/// Each group of x times its matrix of `weight` (G, in, out), which may be a transposed view.
Tensor grouped_product(const Tensor& x, const Tensor& weight, at::IntArrayRef rows) {
  static const auto operation = find_operation<GroupedMm>("titan::grouped_mm");
  return operation.call(x, weight, rows);
}

struct GroupedLinearFunction : torch::autograd::Function<GroupedLinearFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& weight,
                        at::IntArrayRef rows) {
    ctx->save_for_backward({x, weight});
    ctx->saved_data["rows"] = rows.vec();
    BelowAutograd guard;
    return grouped_product(x, weight.transpose(1, 2), rows);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_differentiated_once("grouped_linear");
    static const auto weight_grad =
        find_operation<GroupedMmWeightGrad>("titan::grouped_mm_weight_grad");
    const variable_list saved = ctx->get_saved_variables();
    const std::vector<int64_t> rows = ctx->saved_data["rows"].toIntVector();
    const Tensor grad = grads[0].contiguous();
    BelowAutograd guard;
    variable_list out(3);
    if (ctx->needs_input_grad(0)) out[0] = grouped_product(grad, saved[1], rows);
    if (ctx->needs_input_grad(1)) out[1] = weight_grad.call(grad, saved[0], rows);
    return out;
  }
};

struct GroupBias : torch::autograd::Function<GroupBias> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& bias,
                        at::IntArrayRef rows, double factor) {
    ctx->saved_data["rows"] = rows.vec();
    ctx->saved_data["factor"] = factor;
    BelowAutograd guard;
    Tensor out = x.clone();
    for (const auto& [group, first, count] : rows_of_groups(rows))
      out.narrow(0, first, count).add_(bias[group], factor);
    return out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_differentiated_once("add_group_bias");
    const std::vector<int64_t> rows = ctx->saved_data["rows"].toIntVector();
    const double factor = ctx->saved_data["factor"].toDouble();
    BelowAutograd guard;
    variable_list out(4);
    out[0] = grads[0];
    if (!ctx->needs_input_grad(1)) return out;
    out[1] = at::zeros({static_cast<int64_t>(rows.size()), grads[0].size(1)}, grads[0].options());
    for (const auto& [group, first, count] : rows_of_groups(rows))
      out[1][group].copy_(grads[0].narrow(0, first, count).sum(0) * factor);
    return out;
  }
};

void check_rows(const char* operation, at::IntArrayRef rows, int64_t groups, int64_t num_rows) {
  const bool has_negative = std::any_of(rows.begin(), rows.end(), [](int64_t n) { return n < 0; });
  TITAN_CHECK(static_cast<int64_t>(rows.size()) == groups && !has_negative &&
                  std::accumulate(rows.begin(), rows.end(), int64_t{0}) == num_rows,
              config, operation, ": the rows of ", groups, " groups must be ", num_rows,
              " in all, got ", rows);
}

}  // namespace

Tensor add_group_bias(const Tensor& x, const Tensor& bias, at::IntArrayRef rows, double factor) {
  TITAN_CHECK(x.dim() == 2 && bias.dim() == 2 && x.size(1) == bias.size(1) &&
                  x.scalar_type() == bias.scalar_type(),
              config, "add_group_bias: x (N, out) and bias (G, out) do not fit: ", x.sizes(), " ",
              x.scalar_type(), " and ", bias.sizes(), " ", bias.scalar_type());
  check_rows("add_group_bias", rows, bias.size(0), x.size(0));
  return GroupBias::apply(x, bias, rows, factor);
}

Tensor grouped_linear(const Tensor& x, const Tensor& weight, at::IntArrayRef rows) {
  TITAN_CHECK(x.dim() == 2 && weight.dim() == 3 && x.size(1) == weight.size(2) &&
                  x.scalar_type() == weight.scalar_type(),
              config, "grouped_linear: x (N, in) and weight (G, out, in) do not fit: ", x.sizes(),
              " ", x.scalar_type(), " and ", weight.sizes(), " ", weight.scalar_type());
  check_rows("grouped_linear", rows, weight.size(0), x.size(0));
  if (records_graph({&x, &weight})) return GroupedLinearFunction::apply(x, weight, rows);
  BelowAutograd guard;
  return grouped_product(x, weight.transpose(1, 2), rows);
}

}  // namespace titan::ops
