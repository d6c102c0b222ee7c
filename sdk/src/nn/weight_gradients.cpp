#include <titan/nn/weight_gradients.h>

#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/custom_function.h>

#include <titan/ops/linear.h>

namespace titan::nn {
namespace {

thread_local std::shared_ptr<WeightGradientQueue> current_queue;

struct Deferral : torch::CustomClassHolder {
  Deferral(std::shared_ptr<WeightGradientQueue> queue, Parameter& weight)
      : queue(std::move(queue)), weight(weight) {}
  std::shared_ptr<WeightGradientQueue> queue;
  Parameter& weight;
};

/// The weight's gradient is an output of backward, or is added later by Parameter::add_gradient.
struct SplitLinear : torch::autograd::Function<SplitLinear> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x,
                            const at::Tensor& value, Parameter* weight) {
    ctx->save_for_backward({x, value});
    ctx->saved_data["deferral"] = c10::IValue::make_capsule(
        c10::make_intrusive<Deferral>(WeightGradientQueue::current(), *weight));
    at::NoGradGuard no_grad;
    return ops::linear(x, value);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 const torch::autograd::variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const auto held = ctx->saved_data["deferral"].toCapsule();
    const auto& deferral = static_cast<const Deferral&>(*held);
    const at::Tensor &x = saved[0], &grad_out = grads[0];
    torch::autograd::variable_list out(3);
    if (ctx->needs_input_grad(0)) out[0] = ops::linear_grad_input(grad_out, saved[1]);
    if (!ctx->needs_input_grad(1)) return out;
    out[1] = WeightGradientQueue::give_or_defer(deferral.queue, deferral.weight, [grad_out, x] {
      return ops::linear_grad_weight(grad_out, x);
    });
    return out;
  }
};

}  // namespace

WeightGradientQueue::Scope::Scope(std::shared_ptr<WeightGradientQueue> queue)
    : before_(std::exchange(current_queue, std::move(queue))) {}

WeightGradientQueue::Scope::~Scope() {
  current_queue = std::move(before_);
}

const std::shared_ptr<WeightGradientQueue>& WeightGradientQueue::current() {
  return current_queue;
}

at::Tensor WeightGradientQueue::give_or_defer(const std::shared_ptr<WeightGradientQueue>& queue,
                                              Parameter& weight,
                                              std::function<at::Tensor()> gradient) {
  if (!queue || !queue->is_deferring()) return gradient();
  queue->add([&weight, gradient = std::move(gradient)] {
    const at::NoGradGuard no_grad;
    weight.add_gradient(gradient());
  });
  return at::Tensor();
}

void WeightGradientQueue::run() {
  for (std::function<void()>& work : work_) std::exchange(work, nullptr)();
  work_.clear();
}

at::Tensor linear(const at::Tensor& x, Parameter& weight) {
  const at::Tensor& value = weight.value();
  const bool records_graph = at::GradMode::is_enabled() && value.requires_grad();
  if (!current_queue || !records_graph) return ops::linear(x, value);
  return SplitLinear::apply(x, value, &weight);
}

}  // namespace titan::nn
