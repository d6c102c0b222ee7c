// Matrix products with few rows against ATen's in double: remainders of rows and streams, both
// builds, and the cases left to BLAS.
#include <titan/ops/few_rows.h>

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <titan/ops/linear.h>

#include "ops/kernels/kernels.h"
#include "ops_testing.h"

namespace titan::ops::testing::few_rows_test {
namespace {

using at::Tensor;

/// fp32, without a graph.
Tensor drawn(at::IntArrayRef sizes) {
  return random(sizes.vec()).detach().to(at::kFloat);
}

Tensor with_scope(const Tensor& x, const Tensor& weight) {
  const FewRowsScope scope;
  return linear(x, weight);
}

/// Largest error relative to the product in double, scaled by the size of sums of `weight`'s rows.
double error(const Tensor& result, const Tensor& x, const Tensor& weight) {
  const Tensor exact = x.to(at::kDouble).matmul(weight.to(at::kDouble).t());
  const Tensor size = x.to(at::kDouble).abs().matmul(weight.to(at::kDouble).abs().t()) + 1e-30;
  return ((result.to(at::kDouble) - exact).abs() / size).max().item<double>();
}

TEST(FewRows, AreTheProductWhereverRowsAndStreamsEnd) {
  for (const int64_t cols : {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 200})
    for (const int64_t rows : {1, 3, 4, 5, 7, 64})
      for (const int64_t count : {1, 3, 8}) {
        const Tensor x = drawn({count, cols}), weight = drawn({rows, cols});
        EXPECT_LT(error(with_scope(x, weight), x, weight), 1e-6)
            << count << " x " << cols << ", " << rows << " rows of weight";
        const Tensor narrow = weight.to(at::kBFloat16);
        EXPECT_LT(error(with_scope(x.to(at::kBFloat16), narrow), x.to(at::kBFloat16), narrow),
                  cols == 1 ? 0.008 : 0.004)
            << "bf16, " << count << " x " << cols << ", " << rows << " rows of weight";
      }
}

TEST(FewRows, OfNarrowWeightsAreSummedInFp32) {
  const Tensor x = drawn({1, 4096}).to(at::kBFloat16), weight = drawn({8, 4096}).to(at::kBFloat16);
  const Tensor exact = x.to(at::kDouble).matmul(weight.to(at::kDouble).t());
  // rounded once at the end: half of the last of 8 bits
  EXPECT_LT(((with_scope(x, weight).to(at::kDouble) - exact) / exact).abs().max().item<double>(),
            1.0 / 256 + 1e-3);
}

TEST(FewRows, DoNotDependOnEachOtherOrOnThreads) {
  const Tensor x = drawn({8, 512}), weight = drawn({1027, 512});
  const Tensor all = with_scope(x, weight);
  for (int64_t i = 0; i < 8; ++i)
    EXPECT_TRUE(at::equal(all.narrow(0, i, 1), with_scope(x.narrow(0, i, 1), weight))) << i;
  const int threads = at::get_num_threads();
  for (const int other : {1, 3}) {
    at::set_num_threads(other);
    EXPECT_TRUE(at::equal(all, with_scope(x, weight))) << other << " threads";
  }
  at::set_num_threads(threads);
}

TEST(FewRows, KeepTheShapeAndTakeAnyOrderOfX) {
  const Tensor x = drawn({2, 64, 3}).transpose(1, 2), weight = drawn({40, 64});
  const Tensor result = with_scope(x, weight);
  EXPECT_EQ(result.sizes(), (at::IntArrayRef{2, 3, 40}));
  EXPECT_LT(error(result, x, weight), 1e-6);
}

TEST(FewRows, AreThoseOfTheBuildForAnyCpuAsWell) {
  const Tensor x = drawn({2, 100}), weight = drawn({11, 100});
  const Tensor wanted = with_scope(x, weight), found = at::zeros({2, 11});
  baseline_kernels().few_rows({.data = weight.const_data_ptr(), .rows = 11, .cols = 100},
                              x.const_data_ptr<float>(), 2, found.mutable_data_ptr<float>(), 11);
  EXPECT_LT((wanted - found).abs().max().item<double>(), 1e-4);
  const Tensor narrow = weight.to(at::kBFloat16).contiguous();
  const Tensor halves = x.view({2, 50, 2}).transpose(1, 2).contiguous();
  baseline_kernels().few_rows_bf16({.data = narrow.const_data_ptr(), .rows = 11, .cols = 100},
                                   halves.const_data_ptr<float>(), 2,
                                   found.mutable_data_ptr<float>(), 11);
  EXPECT_LT(error(found, x, narrow), 1e-6);
}

/// Bitwise ATen's result, which training has always used.
TEST(FewRows, AreLeftToBlasWithoutAScopeOrWithManyRowsOrAGraph) {
  const Tensor weight = drawn({1024, 768});
  const Tensor few = drawn({3, 768}), many = drawn({FewRowsScope::kMost + 1, 768});
  const Tensor by_blas = few.mm(weight.t());
  ASSERT_FALSE(at::equal(with_scope(few, weight), by_blas));  // else the test shows nothing
  EXPECT_TRUE(at::equal(linear(few, weight), by_blas));
  EXPECT_TRUE(at::equal(with_scope(many, weight), many.mm(weight.t())));
  const Tensor turned = drawn({768, 1024}).t();
  EXPECT_TRUE(at::equal(with_scope(few, turned), few.mm(turned.t())));
  const Tensor leaf = weight.clone().requires_grad_(true);
  EXPECT_TRUE(at::equal(with_scope(few, leaf), by_blas));
  {
    const FewRowsScope outer;
    { const FewRowsScope inner; }
    EXPECT_FALSE(at::equal(linear(few, weight), by_blas));
  }
  EXPECT_TRUE(at::equal(linear(few, weight), by_blas));
}

}  // namespace
}  // namespace titan::ops::testing::few_rows_test
