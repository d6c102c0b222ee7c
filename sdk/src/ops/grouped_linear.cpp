// grouped_linear: a product of ATen's per group, written where it belongs in the result.
#include <titan/ops/grouped_linear.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include "autograd.h"

namespace titan::ops {
namespace {

using at::Tensor;

/// Calls `visit(group, first row, number of rows)` for each group that has rows.
template <class Visit>
void for_each_group(at::IntArrayRef rows, const Visit& visit) {
  int64_t first = 0;
  for (size_t group = 0; group < rows.size(); first += rows[group++])
    if (rows[group] > 0) visit(static_cast<int64_t>(group), first, rows[group]);
}

/// x's groups times their matrices of `weight` (G, in, out), which may be a transposed view.
Tensor grouped_product(const Tensor& x, const Tensor& weight, at::IntArrayRef rows) {
  Tensor out = at::empty({x.size(0), weight.size(2)}, x.options());
  for_each_group(rows, [&](int64_t group, int64_t first, int64_t count) {
    Tensor part = out.narrow(0, first, count);
    at::mm_out(part, x.narrow(0, first, count), weight[group]);
  });
  return out;
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
    const variable_list saved = ctx->get_saved_variables();
    const std::vector<int64_t> rows = ctx->saved_data["rows"].toIntVector();
    const Tensor grad = grads[0].contiguous();
    BelowAutograd guard;
    variable_list out(3);
    if (ctx->needs_input_grad(0)) out[0] = grouped_product(grad, saved[1], rows);
    if (ctx->needs_input_grad(1)) {
      out[1] = at::zeros(saved[1].sizes(), saved[1].options());
      for_each_group(rows, [&](int64_t group, int64_t first, int64_t count) {
        Tensor part = out[1][group];
        at::mm_out(part, grad.narrow(0, first, count).t(), saved[0].narrow(0, first, count));
      });
    }
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
    for_each_group(rows, [&](int64_t group, int64_t first, int64_t count) {
      out.narrow(0, first, count).add_(bias[group], factor);
    });
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
    for_each_group(rows, [&](int64_t group, int64_t first, int64_t count) {
      out[1][group].copy_(grads[0].narrow(0, first, count).sum(0) * factor);
    });
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
