// linear_cross_entropy: shape checks and autograd; the arithmetic is in the devices'
// implementations.
#include <titan/ops/linear_cross_entropy.h>

#include <torch/csrc/autograd/graph_task.h>

#include "autograd.h"
#include "signatures.h"

namespace titan::ops {
namespace {

std::tuple<Tensor, Tensor, Tensor> on_device(const Tensor& x, const Tensor& weight,
                                             const Tensor& labels, bool needs_dx,
                                             bool needs_dweight) {
  static const auto operation = find_operation<LinearCrossEntropy>("titan::linear_cross_entropy");
  BelowAutograd guard;
  return operation.call(x, weight, labels, needs_dx, needs_dweight);
}

struct LinearCrossEntropySum : torch::autograd::Function<LinearCrossEntropySum> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& weight,
                        const Tensor& labels) {
    auto [loss, dx, dweight] =
        on_device(x, weight, labels, x.requires_grad(), weight.requires_grad());
    ctx->save_for_backward({dx, dweight});
    return loss;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_differentiated_once("linear_cross_entropy");
    variable_list saved = ctx->get_saved_variables();
    const Tensor& factor = grads[0];
    // A graph that may be walked again keeps its gradients untouched; else they are handed over.
    const bool keep = torch::autograd::get_current_graph_task_keep_graph();
    BelowAutograd guard;
    // Elsewhere than on the CPU, asking for the value would wait for the device.
    const bool is_one = factor.is_cpu() && factor.item<double>() == 1;
    variable_list out(3);
    for (int i = 0; i < 2; ++i) {
      if (!ctx->needs_input_grad(i) || !saved[i].defined()) continue;
      out[i] = keep ? saved[i].clone() : saved[i];
      if (!is_one) out[i].mul_(factor);
    }
    return out;
  }
};

}  // namespace

Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& labels) {
  TITAN_CHECK(x.dim() == 2 && weight.dim() == 2 && x.size(1) == weight.size(1) &&
                  weight.size(0) > 0 && x.scalar_type() == weight.scalar_type(),
              config,
              "linear_cross_entropy: x (N, dim) and weight (V, dim) do not fit: ", x.sizes(), " ",
              x.scalar_type(), " and ", weight.sizes(), " ", weight.scalar_type());
  TITAN_CHECK(labels.dim() == 1 && labels.size(0) == x.size(0) && labels.scalar_type() == at::kLong,
              config, "linear_cross_entropy: labels must be int64 of shape (", x.size(0), "), got ",
              labels.sizes(), " ", labels.scalar_type());
  if (records_graph({&x, &weight})) return LinearCrossEntropySum::apply(x, weight, labels);
  return std::get<0>(on_device(x, weight, labels, /*needs_dx=*/false, /*needs_dweight=*/false));
}

}  // namespace titan::ops
