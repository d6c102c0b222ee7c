#include "random_state.h"

#include <mutex>

#include <ATen/Context.h>

namespace titan::recompute {
namespace {

std::vector<at::Generator> generators(c10::Device device) {
  std::vector<at::Generator> all = {at::globalContext().defaultGenerator(c10::kCPU)};
  if (!device.is_cpu() && !device.is_meta())
    all.push_back(at::globalContext().defaultGenerator(device));
  return all;
}

}  // namespace

std::vector<at::Tensor> random_states(c10::Device device) {
  std::vector<at::Tensor> states;
  for (at::Generator& generator : generators(device)) {
    const std::scoped_lock lock(generator.mutex());
    states.push_back(generator.get_state());
  }
  return states;
}

void set_random_states(c10::Device device, const std::vector<at::Tensor>& states) {
  std::vector<at::Generator> all = generators(device);
  for (size_t i = 0; i < all.size(); ++i) {
    const std::scoped_lock lock(all[i].mutex());
    all[i].set_state(states[i]);
  }
}

SameRandomNumbers::SameRandomNumbers(c10::Device device, const std::vector<at::Tensor>& states)
    : device_(device) {
  if (states.empty()) return;
  before_ = random_states(device);
  set_random_states(device, states);
}

SameRandomNumbers::~SameRandomNumbers() {
  if (!before_.empty()) set_random_states(device_, before_);
}

}  // namespace titan::recompute
