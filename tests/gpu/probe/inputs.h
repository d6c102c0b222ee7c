// Random inputs, and texts of shapes. Used by the modes that make operands.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include <ATen/core/Tensor.h>

namespace titan::probe {

/// Normally distributed numbers of standard deviation `size`, float32.
at::Tensor normal(at::IntArrayRef shape, at::Device device, double size = 1);

/// Integers in [0, below), int64.
at::Tensor integers(int64_t below, at::IntArrayRef shape, at::Device device);

/// "2 x 3"
std::string joined(std::initializer_list<int64_t> sizes);

}  // namespace titan::probe
