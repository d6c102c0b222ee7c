#include "stage.h"

#include <algorithm>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <titan/error.h>

namespace titan::pipeline {

namespace {

/// The dtype of the weights as layers read them; states of modules have other dtypes.
at::ScalarType type_of_weights(const ModelPart& part) {
  const auto& all = part.parameters();
  const auto weight =
      std::find_if(all.begin(), all.end(), [](const nn::Parameter* p) { return !p->is_state(); });
  return (weight == all.end() ? all.front() : *weight)->value().scalar_type();
}

}  // namespace

/// Tokens come from the batch, which context parallelism has cut already; tensor parallelism cuts
/// activations further. All stages compute in one dtype: that of the weights as layers read them.
Boundary Stage::boundary(const Batch& batch, int64_t width) const {
  return {.shape = {batch.tokens.size(0), batch.tokens.size(1) / part_.num_sequence_cuts(), width},
          .dtype = type_of_weights(part_)};
}

void Stage::start(int num_microbatches) {
  kept_.assign(static_cast<size_t>(num_microbatches), Kept());
}

void Stage::forward(int microbatch, const Batch& batch, const at::Tensor& input, bool splits) {
  Kept& kept = at(microbatch);
  std::optional<nn::WeightGradientQueue::Scope> scope;
  if (at::GradMode::is_enabled()) {
    if (input.defined()) kept.input = input.detach().set_requires_grad(true);
    if (splits) {
      kept.weight_gradients = std::make_shared<nn::WeightGradientQueue>();
      scope.emplace(kept.weight_gradients);
    }
  } else {
    kept.input = input;
  }
  kept.output = part_.forward(layers_.first, layers_.last, kept.input, batch);
  check_output(kept.output, batch);
}

void Stage::check_output(const at::Tensor& output, const Batch& batch) const {
  if (is_last()) return;
  const Boundary expected = boundary(batch, output_width_);
  TITAN_CHECK(
      output.sizes() == at::IntArrayRef(expected.shape) && output.scalar_type() == expected.dtype,
      config, "layer '", part_.layers()[layers_.last - 1].name, "', the last of stage ", index_,
      ", gave ", output.scalar_type(), " ", output.sizes(), ", but the next stage expects ",
      expected.dtype, " ", at::IntArrayRef(expected.shape),
      ": (rows, tokens, Layer::output_width) in the dtype of the weights");
}

at::Tensor Stage::output(int microbatch) const {
  return at(microbatch).output.detach();
}

void Stage::backward(int microbatch, const at::Tensor& root, const at::Tensor& grad_output) {
  Kept& kept = at(microbatch);
  // a first stage with only frozen weights has no backward
  if (root.requires_grad()) torch::autograd::backward({root}, {grad_output});
  if (kept.input.defined()) kept.input_grad = kept.input.grad();
  kept.input.reset();
  kept.output.reset();
}

void Stage::backward_input(int microbatch, const at::Tensor& root, const at::Tensor& grad_output) {
  at(microbatch).weight_gradients->defer();
  backward(microbatch, root, grad_output);
}

void Stage::backward_weights(int microbatch) {
  std::exchange(at(microbatch).weight_gradients, nullptr)->run();
}

at::Tensor Stage::take_input_grad(int microbatch) {
  at::Tensor grad = std::exchange(at(microbatch).input_grad, at::Tensor());
  TITAN_ASSERT(grad.defined(), "no gradient of the input of stage ", index_, ", microbatch ",
               microbatch);
  return grad;
}

}  // namespace titan::pipeline
