#include <titan/nn/auxiliary_loss.h>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <torch/csrc/autograd/custom_function.h>

#include <titan/error.h>
#include <titan/recompute.h>

namespace titan {

void AuxiliaryLosses::add(const at::Tensor& loss_sum, double share) {
  const at::NoGradGuard no_grad;
  const at::Tensor counted = loss_sum.detach().to(at::kDouble).reshape({}) * share;
  sum_ = sum_.defined() ? sum_ + counted : counted;
}

std::optional<double> AuxiliaryLosses::sum() const {
  if (!sum_.defined()) return std::nullopt;
  return sum_.is_meta() ? 0 : sum_.item<double>();
}

namespace nn {
namespace {

/// The identity on x; its backward also sends a constant gradient to the loss.
struct AddLoss : torch::autograd::Function<AddLoss> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x,
                            const at::Tensor& loss_sum, double factor) {
    ctx->saved_data["factor"] = factor;
    ctx->saved_data["shape"] = loss_sum.sizes().vec();
    ctx->saved_data["dtype"] = static_cast<int64_t>(loss_sum.scalar_type());
    return x.view_as(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 const torch::autograd::variable_list& grads) {
    const auto dtype = static_cast<at::ScalarType>(ctx->saved_data["dtype"].toInt());
    const at::Tensor of_loss =
        at::full(ctx->saved_data["shape"].toIntVector(), ctx->saved_data["factor"].toDouble(),
                 grads[0].options().dtype(dtype));
    return {grads[0], of_loss, at::Tensor()};
  }
};

}  // namespace

at::Tensor with_auxiliary_loss(const at::Tensor& x, const at::Tensor& loss_sum,
                               const Batch& batch) {
  AuxiliaryLosses* const losses = batch.auxiliary_losses.get();
  if (!losses || !at::GradMode::is_enabled()) return x;
  TITAN_CHECK(loss_sum.numel() == 1, plugin, "an auxiliary loss is one number, got a tensor of ",
              loss_sum.sizes());
  const double share = 1 / static_cast<double>(batch.copies.num_ranks);
  if (is_first_run()) losses->add(loss_sum, share);
  const double of_gradient = batch.copies.gradients_are_summed ? share : 1;
  return AddLoss::apply(x, loss_sum, losses->gradient_factor() * of_gradient);
}

}  // namespace nn
}  // namespace titan
