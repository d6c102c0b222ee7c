#include "inputs.h"

#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

namespace titan::probe {

at::Tensor normal(at::IntArrayRef shape, at::Device device, double size) {
  return at::randn(shape, at::TensorOptions().device(device).dtype(at::kFloat)).mul_(size);
}

at::Tensor integers(int64_t below, at::IntArrayRef shape, at::Device device) {
  return at::randint(below, shape, at::TensorOptions().device(device).dtype(at::kLong));
}

std::string joined(std::initializer_list<int64_t> sizes) {
  std::string text;
  for (const int64_t size : sizes) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

}  // namespace titan::probe
