#include "quantized_grouped.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <titan/error.h>
#include <titan/nn/weight_gradients.h>
#include <titan/ops/grouped_linear.h>
#include <torch/csrc/autograd/custom_function.h>

namespace titan::quantized {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Tensor grouped_output(const Products& products, const Tensor& x, const Tensor& weight,
                      at::IntArrayRef rows) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const Tensor out = at::empty({x.size(0), weight.size(1)}, x.options());
  for (const auto& [group, first, count] : ops::rows_of_groups(rows))
    out.narrow(0, first, count)
        .copy_(products.output(x.narrow(0, first, count), weight.select(0, group), {}));
  return out;
}

Tensor grouped_grad_input(const Products& products, const Tensor& grad, const Tensor& weight,
                          at::IntArrayRef rows) {
  const Tensor out = at::empty({grad.size(0), weight.size(2)}, grad.options());
  for (const auto& [group, first, count] : ops::rows_of_groups(rows))
    out.narrow(0, first, count)
        .copy_(products.grad_input(grad.narrow(0, first, count), weight.select(0, group)));
  return out;
}

Tensor grouped_grad_weight(const Products& products, const Tensor& grad, const Tensor& x,
                           at::IntArrayRef rows) {
  const auto num_groups = static_cast<int64_t>(rows.size());
  const Tensor out = at::zeros({num_groups, grad.size(1), x.size(1)}, grad.options());
  for (const auto& [group, first, count] : ops::rows_of_groups(rows))
    out.select(0, group).copy_(
        products.grad_weight(grad.narrow(0, first, count), x.narrow(0, first, count)));
  return out;
}

/// State for the backward, in addition to tensors.
struct GroupedLayer : torch::CustomClassHolder {
  GroupedLayer(std::shared_ptr<const Products> products, nn::Parameter& weight,
               at::IntArrayRef rows)
      : products(std::move(products)),
        weight(weight),
        rows(rows.vec()),
        queue(nn::WeightGradientQueue::current()) {}
  std::shared_ptr<const Products> products;
  nn::Parameter& weight;
  std::vector<int64_t> rows;
  std::shared_ptr<nn::WeightGradientQueue> queue;  // null: backward is not split
};

struct QuantizedGroupedLinear : torch::autograd::Function<QuantizedGroupedLinear> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& value,
                        const std::shared_ptr<const Products>& products, nn::Parameter* weight,
                        at::IntArrayRef rows) {
    ctx->save_for_backward({x, value});
    ctx->saved_data["layer"] =
        c10::IValue::make_capsule(c10::make_intrusive<GroupedLayer>(products, *weight, rows));
    return grouped_output(*products, x, value, rows);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_differentiated_once();
    const variable_list saved = ctx->get_saved_variables();  // may run the layer again
    const at::AutoDispatchBelowADInplaceOrView below;
    const auto held = ctx->saved_data["layer"].toCapsule();
    const auto& layer = static_cast<const GroupedLayer&>(*held);
    const Tensor &grad = grads[0], &x = saved[0];
    variable_list out(5);  // gradients of x, value, products, weight and rows
    if (ctx->needs_input_grad(0))
      out[0] = grouped_grad_input(*layer.products, grad, saved[1], layer.rows);
    if (!ctx->needs_input_grad(1)) return out;
    out[1] = nn::WeightGradientQueue::give_or_defer(
        layer.queue, layer.weight, [products = layer.products, grad, x, rows = layer.rows] {
          return grouped_grad_weight(*products, grad, x, rows);
        });
    return out;
  }
};

}  // namespace

Tensor QuantizedGroupedKernel::matmul(const Tensor& x, nn::Parameter& weight,
                                      at::IntArrayRef rows) {
  const Tensor& value = weight.value();
  TITAN_CHECK(x.dim() == 2 && value.dim() == 3 && x.size(1) == value.size(2) &&
                  x.scalar_type() == value.scalar_type(),
              config, "layer of experts '", weight.name(),
              "': x (N, in) and weight (G, out, in) do not fit: ", x.sizes(), " ", x.scalar_type(),
              " and ", value.sizes(), " ", value.scalar_type());
  TITAN_CHECK(static_cast<int64_t>(rows.size()) == value.size(0) &&
                  std::all_of(rows.begin(), rows.end(), [](int64_t n) { return n >= 0; }) &&
                  std::accumulate(rows.begin(), rows.end(), int64_t{0}) == x.size(0),
              config, "layer of experts '", weight.name(), "': the rows of ", value.size(0),
              " experts must be ", x.size(0), " in all, got ", rows);
  if (at::GradMode::is_enabled() && (x.requires_grad() || value.requires_grad()))
    return QuantizedGroupedLinear::apply(x, value, products_, &weight, rows);
  return grouped_output(*products_, x, value, rows);
}

}  // namespace titan::quantized
