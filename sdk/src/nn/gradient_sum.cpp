#include <titan/nn/gradient_sum.h>

#include <utility>

#include <ATen/core/grad_mode.h>
#include <c10/core/ScalarType.h>

namespace titan::nn {

/// Autograd refuses a hook that changes a gradient's dtype. So the hook returns the rounded sum,
/// and the wide sum replaces it after autograd has stored it. The gradient of earlier microbatches
/// waits here meanwhile, so that nothing rounded is added to it.
struct GradientSum::State {
  Parameter& parameter;
  at::ScalarType reduce_dtype;
  at::Tensor sum;      // undefined: autograd's stored gradient stays
  at::Tensor earlier;  // gradient of earlier microbatches

  at::Tensor sum_over(const dist::Group& group, const at::Tensor& gradient) {
    sum.reset(), earlier.reset();
    if (!gradient.defined()) return gradient;  // deferred: Parameter::add_gradient calls again
    const at::ScalarType dtype = gradient.scalar_type();
    const bool is_narrow =
        dtype != reduce_dtype && c10::promoteTypes(dtype, reduce_dtype) == reduce_dtype;
    const at::Tensor total = is_narrow ? gradient.to(reduce_dtype, /*non_blocking=*/false,
                                                     /*copy=*/false, at::MemoryFormat::Contiguous)
                                       : gradient.clone(at::MemoryFormat::Contiguous);
    group.all_reduce(total, dist::Reduce::sum).wait();
    if (!is_narrow) return total;
    const at::Tensor& value = parameter.value();
    if (!parameter.shard().is_same(value)) {
      sum = total;
      earlier = std::exchange(value.mutable_grad(), at::Tensor());
    }
    return total.to(dtype);
  }

  void put_in_place() {
    if (!sum.defined()) return;
    const at::NoGradGuard no_grad;
    if (earlier.defined()) sum.add_(std::exchange(earlier, at::Tensor()));
    parameter.value().mutable_grad() = std::exchange(sum, at::Tensor());
  }
};

GradientSum::GradientSum(Parameter& parameter, at::ScalarType reduce_dtype)
    : state_(new State{.parameter = parameter, .reduce_dtype = reduce_dtype}) {
  parameter.on_gradient([state = state_](Parameter&) { state->put_in_place(); });
}

bool GradientSum::is_attached() const {
  const at::Tensor& value = state_->parameter.value();
  return hooked_.is_same(value) || !value.requires_grad();
}

void GradientSum::attach(const dist::Group& group) {
  if (is_attached()) return;
  hooked_ = state_->parameter.value();
  if (group.size() == 1) return;
  hooked_.register_hook([state = state_, group](const at::Tensor& gradient) {
    return state->sum_over(group, gradient);
  });
}

}  // namespace titan::nn
