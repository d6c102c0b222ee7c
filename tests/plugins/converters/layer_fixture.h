// One linear layer with a converter's kernel, run forward and backward. Used by the tests of float8
// and mx.
#pragma once

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <titan/nn/linear.h>

#include "plugins/converters/common/quantized_linear.h"

namespace titan::quantized_test {

/// Numbers that differ by orders of magnitude between rows and columns.
inline at::Tensor numbers(at::IntArrayRef shape, at::ScalarType dtype, double size) {
  at::set_num_threads(1);  // the products are small, and threads would mostly wait for each other
  const at::Tensor rows = at::randn({shape[0], 1}).exp(), columns = at::randn({1, shape[1]}).exp();
  return (at::randn(shape) * rows * columns * size).to(dtype);
}

struct LayerCase {
  int64_t rows, in, out;
  at::ScalarType dtype;
};

inline std::vector<LayerCase> layer_cases() {
  std::vector<LayerCase> cases;
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const auto& [rows, in, out] :
         {std::array<int64_t, 3>{32, 64, 96}, {7, 48, 80}, {1, 16, 32}})
      cases.push_back({rows, in, out, dtype});
  return cases;
}

/// A layer, its input and the gradient of its output.
struct OneLinear {
  explicit OneLinear(const LayerCase& c)
      : linear(c.in, c.out, nn::WeightLayout::replicated, nn::Init::normal(0, 1)),
        x(numbers({c.rows, c.in}, c.dtype, 1)),
        grad(numbers({c.rows, c.out}, c.dtype, 1e-4)) {
    linear.set_names("layer");
    linear.weight().allocate(c10::kCPU, c.dtype);
    const at::NoGradGuard no_grad;
    at::Tensor(linear.weight().value()).copy_(numbers({c.out, c.in}, c.dtype, 0.02));
    x.set_requires_grad(true);
  }

  void use(std::shared_ptr<const quantized::Products> products) {
    linear.set_kernel("test", std::make_unique<quantized::QuantizedKernel>(std::move(products)));
  }
  /// Runs forward and backward; drops earlier gradients.
  at::Tensor run() {
    x.mutable_grad() = at::Tensor();
    linear.weight().clear_gradient();
    const at::Tensor y = linear(x, Batch{});
    y.backward(grad);
    return y.detach();
  }
  at::Tensor weight() { return linear.weight().value().detach(); }

  nn::Linear linear;
  at::Tensor x, grad;
};

}  // namespace titan::quantized_test
