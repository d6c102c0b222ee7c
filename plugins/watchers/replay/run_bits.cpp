#include "run_bits.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <xxhash.h>

namespace titan::replay {
namespace {

constexpr int64_t kChunk = int64_t{1} << 24;  // elements that are hashed together
constexpr auto kOdd = static_cast<int64_t>(0x9e3779b97f4a7c15);

at::Tensor bits_of(const at::Tensor& flat) {
  switch (flat.element_size()) {
    case 8:
      return flat.view(at::kLong);
    case 4:
      return flat.view(at::kInt);
    case 2:
      return flat.view(at::kShort);
    default:
      return flat.view(at::kByte);
  }
}

}  // namespace

/// The sum over elements of their bits times an odd number of the position, modulo 2^64. An odd
/// factor keeps every change of the bits.
at::Tensor hash_on_device(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  const at::Tensor flat = tensor.detach().contiguous().view({-1});
  const at::TensorOptions longs = at::TensorOptions().dtype(at::kLong).device(flat.device());
  at::Tensor sum = at::zeros({}, longs);
  for (int64_t begin = 0; begin < flat.numel(); begin += kChunk) {
    const int64_t size = std::min(kChunk, flat.numel() - begin);
    const at::Tensor bits = bits_of(flat.narrow(0, begin, size)).to(at::kLong);
    at::Tensor weights = at::arange(begin, begin + size, longs).mul_(kOdd);
    weights.bitwise_xor_(weights.bitwise_right_shift(29)).bitwise_or_(1);
    sum.add_(bits.mul(weights).sum());
  }
  return sum;
}

int64_t hash_in_memory(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().contiguous();
  return static_cast<int64_t>(XXH3_64bits(flat.const_data_ptr(), flat.nbytes()));
}

Difference difference_of(const RunBits& a, const RunBits& b) {
  const auto first = [](const std::vector<RunBits::Seen>& x, const std::vector<RunBits::Seen>& y) {
    const auto [at, ignored] = std::mismatch(x.begin(), x.end(), y.begin(), y.end());
    return at == x.end() ? int64_t{-1} : at->name;
  };
  return {.output = first(a.outputs, b.outputs),
          .gradient = first(a.gradients, b.gradients),
          .is_of_loss = a.loss != b.loss || a.auxiliary != b.auxiliary};
}

void Recorder::watch_gradients(ModelPart& whole) {
  for (const Layer& layer : whole.layers()) state_->layers.push_back(layer.name);
  for (nn::Parameter* parameter : whole.parameters()) {
    if (parameter->is_frozen()) continue;
    const auto number = static_cast<int64_t>(state_->parameters.size());
    state_->parameters.push_back(parameter->name());
    parameter->on_gradient([state = state_, number](nn::Parameter& p) {
      if (state->is_recording) state->see(number, p.value().grad(), state->gradients);
    });
  }
}

void Recorder::watch_outputs(ModelPart& part) {
  for (const Layer& layer : part.layers()) {
    const auto place = std::find(state_->layers.begin(), state_->layers.end(), layer.name);
    const auto number =
        static_cast<int64_t>(state_->parameters.size()) + (place - state_->layers.begin());
    layer.module->wrap(
        [state = state_, number](const at::Tensor& x, const Batch& batch, const nn::Next& next) {
          at::Tensor y = next(x, batch);
          if (state->is_recording) state->see(number, y, state->outputs);
          return y;
        });
  }
}

std::string Recorder::name(int64_t number) const {
  const auto num_parameters = static_cast<int64_t>(state_->parameters.size());
  if (number < num_parameters)
    return "the gradient of '" + state_->parameters[static_cast<size_t>(number)] + "'";
  const auto layer = static_cast<size_t>(number - num_parameters);
  return "the output of '" +
         (layer < state_->layers.size() ? state_->layers[layer] : std::string("a layer")) + "'";
}

void Recorder::State::see(int64_t name, const at::Tensor& tensor, std::vector<RunBits::Seen>& to) {
  if (!tensor.defined() || tensor.is_meta()) return;
  to.push_back({.name = name});
  if (tensor.is_cpu()) {
    to.back().hash = hash_in_memory(tensor);
    return;
  }
  to.back().hash = static_cast<int64_t>(on_device.size());
  on_device.push_back(hash_on_device(tensor));
}

void Recorder::begin() {
  state_->outputs.clear(), state_->gradients.clear(), state_->on_device.clear();
  state_->is_recording = true;
}

RunBits Recorder::end(const StepLoss& loss) {
  state_->is_recording = false;
  if (!state_->on_device.empty()) {
    const at::Tensor host = at::stack(std::exchange(state_->on_device, {})).cpu();
    for (auto* seen : {&state_->outputs, &state_->gradients})
      for (RunBits::Seen& one : *seen) one.hash = host.const_data_ptr<int64_t>()[one.hash];
  }
  return {.outputs = std::exchange(state_->outputs, {}),
          .gradients = std::exchange(state_->gradients, {}),
          .loss = std::bit_cast<uint64_t>(loss.normalized_sum),
          .auxiliary = std::bit_cast<uint64_t>(loss.auxiliary.value_or(0))};
}

}  // namespace titan::replay
