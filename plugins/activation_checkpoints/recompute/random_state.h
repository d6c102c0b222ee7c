// Saves and restores the states of the random generators, so that a recomputation draws the same
// numbers.
#pragma once

#include <vector>

#include <ATen/core/Generator.h>

namespace titan::recompute {

/// The state of the CPU's generator, and of the device's if it is another one.
std::vector<at::Tensor> random_states(c10::Device device);
void set_random_states(c10::Device device, const std::vector<at::Tensor>& states);

/// Sets the generators to `states` while alive, then restores their previous states. Does nothing
/// without states.
class SameRandomNumbers {
 public:
  SameRandomNumbers(c10::Device device, const std::vector<at::Tensor>& states);
  ~SameRandomNumbers();
  SameRandomNumbers(const SameRandomNumbers&) = delete;

 private:
  c10::Device device_;
  std::vector<at::Tensor> before_;
};

}  // namespace titan::recompute
