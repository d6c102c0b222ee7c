// Products of 16-bit matrices on the machine's CPU, against the exact products rounded once.
#include <titan/ops/mm.h>

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "ops_testing.h"

namespace titan::ops::testing::mm_test {
namespace {

constexpr at::ScalarType kTypes[] = {at::kBFloat16, at::kHalf, at::kFloat, at::kDouble};

/// Half a unit in the last place, plus the error of such a short sum in fp32.
double tolerance(at::ScalarType type) {
  switch (type) {
    case at::kBFloat16:
      return 1.0 / 256 * 1.01;
    case at::kHalf:
      return 1.0 / 2048 * 1.01;
    case at::kFloat:
      return 1e-5;
    default:
      return 1e-14;
  }
}

void expect_rounded_once(const Tensor& found, const Tensor& exact, const char* what) {
  const double limit = tolerance(found.scalar_type());
  const Tensor error = (found.to(at::kDouble) - exact).abs();
  // sums that cancel are as exact as their terms, which are near 1
  EXPECT_TRUE((error <= limit * exact.abs() + 1e-5).all().item<bool>())
      << what << " in " << found.scalar_type() << ": " << error.max().item<double>();
}

TEST(Mm, RoundsOnce) {
  for (const at::ScalarType type : kTypes) {
    const Tensor a = random({37, 50}, type), b = random({50, 29}, type);
    const Tensor exact = a.to(at::kDouble).matmul(b.to(at::kDouble));
    const Tensor y = ops::mm(a, b);
    EXPECT_EQ(y.scalar_type(), type);
    expect_rounded_once(y, exact, "a b");
    expect_rounded_once(ops::mm(b.t(), a.t()), exact.t(), "views");
  }
}

TEST(Mm, WritesAndAddsInPlace) {
  for (const at::ScalarType type : kTypes) {
    const Tensor a = random({8, 40}, type), b = random({40, 12}, type);
    const Tensor exact = a.to(at::kDouble).matmul(b.to(at::kDouble));
    const Tensor all = at::zeros({3, 8, 12}, a.options());
    ops::mm_into(all[1], a, b);
    expect_rounded_once(all[1], exact, "written");
    const Tensor before = random({8, 12}, type);
    all[1].copy_(before);
    ops::add_mm_to(all[1], a, b);
    expect_rounded_once(all[1], exact + before.to(at::kDouble), "added");
    EXPECT_EQ(all[0].abs().sum().item<double>() + all[2].abs().sum().item<double>(), 0);
  }
}

TEST(Mm, TakesNothing) {
  for (const at::ScalarType type : kTypes) {
    EXPECT_EQ(ops::mm(random({0, 4}, type), random({4, 5}, type)).numel(), 0);
    EXPECT_EQ(ops::mm(random({3, 0}, type), random({0, 2}, type)).abs().sum().item<double>(), 0);
  }
}

}  // namespace
}  // namespace titan::ops::testing::mm_test
