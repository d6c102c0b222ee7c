// The fused layers against the same formulas differentiated by torch, in double.
#include "fused.h"

#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/silu.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

namespace fused_layers {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

Tensors leaves(const std::vector<std::vector<int64_t>>& shapes) {
  at::Generator generator = at::detail::createCPUGenerator(3);
  Tensors all;
  for (const auto& shape : shapes)
    all.push_back(at::randn(shape, generator, at::TensorOptions().dtype(at::kDouble))
                      .requires_grad_());
  return all;
}

void expect_same(const Tensor& actual, const Tensor& expected, const Tensors& inputs) {
  EXPECT_TRUE(actual.allclose(expected, 1e-12, 1e-13));
  const auto a = torch::autograd::grad({actual.sin().sum()}, inputs);
  const auto b = torch::autograd::grad({expected.sin().sum()}, inputs);
  for (size_t i = 0; i < inputs.size(); ++i)
    EXPECT_TRUE(a[i].allclose(b[i], 1e-11, 1e-12)) << "gradient of input " << i;
}

TEST(FusedLayers, NormIsThatOfTorch) {
  const Tensors in = leaves({{2, 3, 8}, {8}});
  expect_same(norm(in[0], in[1], 0.1), at::rms_norm(in[0], {8}, in[1], 0.1), in);
}

TEST(FusedLayers, FeedForwardIsItsFormula) {
  const Tensors in = leaves({{2, 3, 8}, {12, 8}, {8, 12}, {12, 8}});
  const Tensor gated = at::silu(at::linear(in[0], in[1])) * at::linear(in[0], in[3]);
  expect_same(feed_forward(in[0], in[1], in[2], in[3]), at::linear(gated, in[2]), in);
}

}  // namespace
}  // namespace fused_layers
