#include "quantized_linear.h"

#include <limits>
#include <utility>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>
#include <c10/util/accumulate.h>
#include <titan/error.h>
#include <titan/nn/weight_gradients.h>
#include <titan/recompute.h>
#include <torch/csrc/autograd/custom_function.h>

namespace titan::quantized {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using ProductsPtr = std::shared_ptr<const Products>;

/// (..., n) as (rows, n); reshape's -1 cannot infer the rows of an empty batch.
Tensor as_matrix(const Tensor& x) {
  if (x.dim() == 2) return x;
  return x.reshape({c10::multiply_integers(x.sizes().slice(0, x.dim() - 1)), x.size(-1)});
}

Tensor with_rows_of(const Tensor& x, const Tensor& matrix) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = matrix.size(1);
  return matrix.view(shape);
}

/// x (..., in) -> (..., out), or the result that activation checkpointing has kept.
Tensor output_of(const Products& products, const Tensor& x, const Tensor& weight) {
  const at::AutoDispatchBelowADInplaceOrView below;
  Tensor maximum;
  if (products.uses_maximum(x))
    maximum = keepable({.kind = Operation::Kind::maximum}, [&] { return largest_magnitude(x); });
  const Operation operation{
      .kind = Operation::Kind::matmul,
      .flops = 2.0 * static_cast<double>(x.numel()) * static_cast<double>(weight.size(0)),
      .shape = {weight.size(1), weight.size(0)},
      .num_saved_inputs = 2};
  return keepable(operation,
                  [&] { return with_rows_of(x, products.output(as_matrix(x), weight, maximum)); });
}

/// State for the backward, in addition to tensors.
struct Layer : torch::CustomClassHolder {
  Layer(ProductsPtr products, nn::Parameter& weight)
      : products(std::move(products)), weight(weight), queue(nn::WeightGradientQueue::current()) {}
  ProductsPtr products;
  nn::Parameter& weight;
  std::shared_ptr<nn::WeightGradientQueue> queue;  // null: backward is not split
};

struct QuantizedLinear : torch::autograd::Function<QuantizedLinear> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& value,
                        const ProductsPtr& products, nn::Parameter* weight) {
    ctx->save_for_backward({x, value});
    ctx->saved_data["layer"] =
        c10::IValue::make_capsule(c10::make_intrusive<Layer>(products, *weight));
    return output_of(*products, x, value);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_differentiated_once();
    const variable_list saved = ctx->get_saved_variables();  // may run the layer again
    const at::AutoDispatchBelowADInplaceOrView below;
    const auto held = ctx->saved_data["layer"].toCapsule();
    const auto& layer = static_cast<const Layer&>(*held);
    const Tensor &grad = grads[0], &x = saved[0];
    variable_list out(4);  // gradients of x, value, products and weight
    if (ctx->needs_input_grad(0))
      out[0] = with_rows_of(grad, layer.products->grad_input(as_matrix(grad), saved[1]));
    if (!ctx->needs_input_grad(1)) return out;
    out[1] = nn::WeightGradientQueue::give_or_defer(
        layer.queue, layer.weight, [products = layer.products, grad, x] {
          return products->grad_weight(as_matrix(grad), as_matrix(x));
        });
    return out;
  }
};

}  // namespace

Products::~Products() = default;

void check_differentiated_once() {
  TITAN_CHECK(!at::GradMode::is_enabled(), config,
              "a quantised linear layer cannot be differentiated twice: call backward without "
              "create_graph");
}

Tensor largest_magnitude(const Tensor& x) {
  if (x.numel() == 0) return at::zeros({}, x.options());
  return at::linalg_vector_norm(x, std::numeric_limits<double>::infinity());
}

Tensor QuantizedKernel::matmul(const Tensor& x, nn::Parameter& weight) {
  const Tensor& value = weight.value();
  TITAN_CHECK(x.dim() >= 1 && x.size(-1) == value.size(1), config, "linear layer '", weight.name(),
              "': x (..., in) and weight (out, in) do not fit: ", x.sizes(), " and ",
              value.sizes());
  TITAN_CHECK(x.scalar_type() == value.scalar_type(), config, "linear layer '", weight.name(),
              "': x and weight must have one dtype, got ", x.scalar_type(), " and ",
              value.scalar_type());
  if (at::GradMode::is_enabled() && (x.requires_grad() || value.requires_grad()))
    return QuantizedLinear::apply(x, value, products_, &weight);
  return output_of(*products_, x, value);
}

}  // namespace titan::quantized
