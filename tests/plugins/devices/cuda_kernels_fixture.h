// Shared helpers of the tests of the cuda plugin's kernels.
#pragma once

#include <gtest/gtest.h>

#include <ATen/Context.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>

#include "tests/sdk/ops/ops_testing.h"

namespace titan::ops::testing {

/// Memory filled with NaN, so that elements which a kernel does not write are visible.
class KernelTest : public ::testing::Test {
 protected:
  void SetUp() override { at::globalContext().setDeterministicAlgorithms(true, true); }
  void TearDown() override { at::globalContext().setDeterministicAlgorithms(false, false); }
};

inline double roundings(at::ScalarType type) {
  return type == at::kFloat ? 2e-6 : type == at::kHalf ? 1e-3 : 8e-3;
}

inline void expect_near(const Tensor& got, const Tensor& expected, const char* what) {
  ASSERT_EQ(got.sizes(), expected.sizes()) << what;
  EXPECT_EQ(got.strides(), expected.strides()) << what;
  EXPECT_EQ(got.scalar_type(), expected.scalar_type()) << what;
  if (expected.numel() == 0) return;
  const double largest = expected.detach().to(at::kDouble).abs().max().item<double>();
  EXPECT_LE(max_error(got, expected.to(at::kDouble)),
            roundings(got.scalar_type()) * (largest + 1e-300))
      << what << " of " << got.scalar_type() << " " << got.sizes();
}

/// Tensors with the same values, whose rows have gaps or start at odd addresses.
inline Tensor with_odd_start(const Tensor& x) {
  const Tensor storage = at::zeros_like(x).flatten();
  const Tensor longer = at::cat({storage.narrow(0, 0, 1), storage});
  return longer.narrow(0, 1, x.numel()).view(x.sizes()).copy_(x);
}

}  // namespace titan::ops::testing
