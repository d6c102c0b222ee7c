// clamped_swiglu against ATen's composition under its autograd. The composition avoids clamp, whose
// gradient at the limit differs between versions of LibTorch.
#include <titan/ops/clamped_swiglu.h>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/where.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/plugins/error_of.h"

namespace titan::ops::clamped_swiglu_test {
namespace {

using at::Tensor;

Tensor composed(const Tensor& gate, const Tensor& up, const ClampedSwigluOptions& o) {
  const Tensor g = at::where(gate > o.limit, o.limit, gate),
               u = at::where(up > o.limit, o.limit, at::where(up < -o.limit, -o.limit, up));
  return g * (g * o.alpha).sigmoid() * (u + 1);
}

TEST(ClampedSwiglu, IsTheComposition) {
  for (const auto& [type, limit] :
       {std::pair(at::kDouble, 1e-14), std::pair(at::kFloat, 2e-6), std::pair(at::kBFloat16, 5e-2)})
    for (const ClampedSwigluOptions options :
         {ClampedSwigluOptions{}, ClampedSwigluOptions{.limit = 0.5, .alpha = 1}}) {
      const Tensor gate = at::randn({7, 9}, type).requires_grad_(),
                   up = at::randn({7, 9}, type).requires_grad_(),
                   upstream = at::randn({7, 9}, type);
      const Tensor out = clamped_swiglu(gate, up, options), expected = composed(gate, up, options);
      EXPECT_EQ(out.scalar_type(), type);
      EXPECT_LE((out - expected).abs().max().item<double>(), limit) << type;
      const auto found = torch::autograd::grad({out}, {gate, up}, {upstream});
      const auto theirs = torch::autograd::grad({expected}, {gate, up}, {upstream});
      for (size_t i = 0; i < 2; ++i)
        EXPECT_LE((found[i] - theirs[i]).abs().max().item<double>(), 4 * limit) << type << " " << i;
    }
}

TEST(ClampedSwiglu, GivesWhatLiesAtTheLimitAGradient) {
  const Tensor at_limits = at::empty({4}, at::kDouble).fill_(0.5).requires_grad_();
  const Tensor out = clamped_swiglu(at_limits, at_limits, {.limit = 0.5});
  const auto found = torch::autograd::grad({out.sum()}, {at_limits});
  const auto theirs =
      torch::autograd::grad({composed(at_limits, at_limits, {.limit = 0.5}).sum()}, {at_limits});
  EXPECT_LE((found[0] - theirs[0]).abs().max().item<double>(), 1e-14);
}

TEST(ClampedSwiglu, WorksOnTheMetaDeviceAndRefusesWhatDoesNotFit) {
  const auto meta = at::TensorOptions().dtype(at::kBFloat16).device(c10::kMeta);
  const Tensor gate = at::empty({3, 5}, meta).requires_grad_(),
               up = at::empty({3, 5}, meta).requires_grad_();
  const Tensor out = clamped_swiglu(gate, up);
  EXPECT_EQ(out.scalar_type(), at::kBFloat16);
  out.sum().backward();
  EXPECT_EQ(up.grad().sizes(), up.sizes());
  const Error error = titan::testing::error_of([&] {
    clamped_swiglu(at::empty({2, 3}), at::empty({3, 2}));
  });
  EXPECT_EQ(error.kind(), ErrorKind::config);
}

}  // namespace
}  // namespace titan::ops::clamped_swiglu_test
