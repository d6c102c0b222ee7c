#include "feed_forward.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <titan/error.h>
#include <titan/nn/weight_gradients.h>
#include <titan/ops/fused.h>
#include <titan/ops/linear.h>
#include <titan/ops/mm.h>
#include <titan/ops/swiglu.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/graph_task.h>

#include "products.h"

namespace titan::fused {
namespace {

using at::Tensor;
using nn::WeightGradientQueue;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// State for the backward, in addition to tensors.
struct Layer : torch::CustomClassHolder {
  explicit Layer(const nn::FeedForwardWeights& weights)
      : weights(weights), queue(WeightGradientQueue::current()) {}
  nn::FeedForwardWeights weights;
  std::shared_ptr<WeightGradientQueue> queue;  // null: backward is not split
};

struct FeedForward : torch::autograd::Function<FeedForward> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& w1, const Tensor& w2,
                        const Tensor& w3, const nn::FeedForwardWeights* weights) {
    ctx->saved_data["layer"] = c10::IValue::make_capsule(c10::make_intrusive<Layer>(*weights));
    const at::AutoDispatchBelowADInplaceOrView below;
    const Tensor rows = as_matrix(x);
    const auto product = [](const Tensor& in, const Tensor& weight) {
      return keepable(product_of(in, weight.size(0)), [&] { return ops::mm(in, weight.t()); });
    };
    const Tensor gate = product(rows, w1);
    const Tensor up = product(rows, w3);
    const Tensor out = product(ops::swiglu(gate, up), w2);
    ctx->save_for_backward({x, gate, up, w1, w2, w3});
    return with_rows_of(x, out);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    TITAN_CHECK(!at::GradMode::is_enabled(), config,
                "a fused feed-forward layer cannot be differentiated twice: call backward without "
                "create_graph");
    const variable_list saved = ctx->get_saved_variables();  // may run the layer again
    const at::AutoDispatchBelowADInplaceOrView below;
    const auto held = ctx->saved_data["layer"].toCapsule();
    const auto& layer = static_cast<const Layer&>(*held);
    const Tensor x = as_matrix(saved[0]), dout = as_matrix(grads[0]);
    // With retain_graph the saved tensors must stay unchanged.
    const bool keep = torch::autograd::get_current_graph_task_keep_graph();
    const Tensor gate = keep ? saved[1].clone() : saved[1];
    const Tensor up = keep ? saved[2].clone() : saved[2];
    const Tensor product = ops::mm(dout, saved[4]);    // first its gradient, then its value
    ops::swiglu_backward_in_place(product, gate, up);  // gate and up become their gradients

    variable_list out(5);  // gradients of x, w1, w2, w3 and `weights`
    if (ctx->needs_input_grad(0)) {
      const Tensor dx = ops::mm(gate, saved[3]);
      out[0] = with_rows_of(saved[0], dx.add_(ops::mm(up, saved[5])));
    }
    const auto weight_gradient = [&](size_t input, nn::Parameter& weight, const Tensor& grad,
                                     const Tensor& in) {
      if (!ctx->needs_input_grad(input)) return;
      out[input] = WeightGradientQueue::give_or_defer(
          layer.queue, weight, [grad, in] { return ops::linear_grad_weight(grad, in); });
    };
    weight_gradient(1, layer.weights.w1, gate, x);
    weight_gradient(2, layer.weights.w2, dout, product);
    weight_gradient(3, layer.weights.w3, up, x);
    return out;
  }
};

class FusedFeedForward final : public nn::FeedForwardKernel {
 public:
  Tensor feed_forward(const Tensor& x, const nn::FeedForwardWeights& w, const Batch&) override {
    const Tensor &w1 = w.w1.value(), &w2 = w.w2.value(), &w3 = w.w3.value();
    const bool records_graph =
        at::GradMode::is_enabled() &&
        (x.requires_grad() || w1.requires_grad() || w2.requires_grad() || w3.requires_grad());
    if (records_graph) return FeedForward::apply(x, w1, w2, w3, &w);
    return ops::linear(ops::swiglu(ops::linear(x, w1), ops::linear(x, w3)), w2);
  }
};

}  // namespace

std::unique_ptr<nn::FeedForwardKernel> make_feed_forward() {
  return std::make_unique<FusedFeedForward>();
}

}  // namespace titan::fused
