// Own matrix products on the CPU beside ATen's in float64.
#include <limits>
#include <string>

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/mm.h>
#include <gtest/gtest.h>

#include "ops/kernels/matmul.h"
#include "ops/matmul.h"
#include "ops_testing.h"

namespace titan::ops::testing {
namespace {

struct Sizes {
  int64_t rows, depth, cols;
};

/// One tile, its neighbours in each direction, several blocks of each axis.
std::vector<Sizes> sizes() {
  return {{1, 1, 1},    {13, 15, 31},   {14, 16, 32},  {15, 17, 33},
          {29, 255, 7}, {3, 257, 2081}, {300, 33, 65}, {40, 600, 70}};
}

/// (rows, cols), in memory by columns when `transposed`.
Tensor matrix(int64_t rows, int64_t cols, bool transposed) {
  return transposed ? random({cols, rows}, at::kFloat).t() : random({rows, cols}, at::kFloat);
}

std::string text(const Sizes& s, bool left, bool right) {
  return std::to_string(s.rows) + " x " + std::to_string(s.depth) + " x " + std::to_string(s.cols) +
         (left ? ", left factor by columns" : "") + (right ? ", right factor by columns" : "");
}

template <class Check>
void for_each_product(const Check& check) {
  for (const Sizes& s : sizes())
    for (const bool left : {false, true})
      for (const bool right : {false, true}) {
        SCOPED_TRACE(text(s, left, right));
        check(matrix(s.rows, s.depth, left), matrix(s.depth, s.cols, right));
      }
}

/// Of a sum of n products of normal numbers; a wrong element is wrong by about √n.
double tolerance(const Tensor& a) {
  return 4e-7 * static_cast<double>(a.size(1)) + 1e-6;
}

Tensor in_tiles(const Tensor& a, const Tensor& b) {
  const Tensor out =
      at::full({a.size(0), b.size(1)}, std::numeric_limits<float>::quiet_NaN(), at::kFloat);
  EXPECT_TRUE(multiply_in_tiles(out, a, b, /*accumulate=*/false));
  return out;
}

/// Of tests that need own inner loops.
#define TITAN_NEEDS_TILES() \
  if (matmul_kernels() == nullptr) GTEST_SKIP() << "this CPU multiplies as LibTorch does"

TEST(Matmul, IsTheProductInAllLayoutsAndSizes) {
  TITAN_NEEDS_TILES();
  for_each_product([](const Tensor& a, const Tensor& b) {
    const Tensor exact = at::mm(a.to(at::kDouble), b.to(at::kDouble));
    EXPECT_LE(max_error(in_tiles(a, b), exact), tolerance(a));
  });
}

TEST(Matmul, AddsToWhatIsThereAndTouchesNothingBesides) {
  TITAN_NEEDS_TILES();
  for_each_product([](const Tensor& a, const Tensor& b) {
    const int64_t rows = a.size(0), cols = b.size(1);
    const Tensor frame = at::full({rows + 2, cols + 3}, 7.0f, at::kFloat);
    const Tensor out = frame.narrow(0, 1, rows).narrow(1, 2, cols);
    const Tensor before = random({rows, cols}, at::kFloat);
    out.copy_(before);
    EXPECT_TRUE(multiply_in_tiles(out, a, b, /*accumulate=*/true));
    const Tensor exact = at::mm(a.to(at::kDouble), b.to(at::kDouble)) + before;
    EXPECT_LE(max_error(out, exact), tolerance(a));
    out.fill_(7.0f);
    EXPECT_TRUE(at::equal(frame, at::full_like(frame, 7.0f)));
  });
}

TEST(Matmul, GivesTheSameBitsForAnyNumberOfThreadsAndOfOtherRows) {
  TITAN_NEEDS_TILES();
  const int before = at::get_num_threads();
  const Tensor a = random({100, 600}, at::kFloat), b = random({600, 500}, at::kFloat);
  at::set_num_threads(1);
  const Tensor alone = in_tiles(a, b);
  at::set_num_threads(3);
  EXPECT_TRUE(at::equal(in_tiles(a, b), alone));
  EXPECT_TRUE(at::equal(in_tiles(a.narrow(0, 17, 30), b), alone.narrow(0, 17, 30)));
  EXPECT_TRUE(at::equal(in_tiles(a, b.narrow(1, 45, 70)), alone.narrow(1, 45, 70)));
  at::set_num_threads(before);
}

TEST(Matmul, LargeProductsAreThose) {
  TITAN_NEEDS_TILES();
  const Tensor a = random({200, 150}, at::kFloat), b = random({150, 90}, at::kFloat);
  EXPECT_TRUE(at::equal(matrix_product(a, b), in_tiles(a, b)));
  const Tensor few = a.narrow(0, 0, 3);
  EXPECT_TRUE(at::equal(matrix_product(few, b), at::mm(few, b)));
}

TEST(Matmul, LeavesOtherTypesToATen) {
  const Tensor a = random({5, 9}), b = random({9, 4});
  EXPECT_TRUE(at::equal(matrix_product(a, b), at::mm(a, b)));
  const Tensor out = random({5, 4});
  const Tensor sum = out + at::mm(a, b);
  product_into(out, a, b, /*accumulate=*/true);
  EXPECT_LE(max_error(out, sum), 1e-14);
}

}  // namespace
}  // namespace titan::ops::testing
