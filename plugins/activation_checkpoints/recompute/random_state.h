// The states of the generators that layers draw from, so that a second run draws the same numbers.
#pragma once

#include <vector>

#include <ATen/core/Generator.h>

namespace titan::recompute {

/// Of the host's generator and, where it is another, of the device's.
std::vector<at::Tensor> random_states(c10::Device device);
void set_random_states(c10::Device device, const std::vector<at::Tensor>& states);

/// While alive the generators go on from `states`; afterwards from where they were, so that nobody
/// else notices. Without states nothing happens.
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
