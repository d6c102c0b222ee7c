// Grouped matrix products as dispatcher operations: the CPU's tiles against ATen's products.
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <titan/ops/grouped_linear.h>

#include "ops_testing.h"

namespace titan::ops::testing::grouped_mm_test {
namespace {

using Rows = std::vector<int64_t>;
using Operation = Tensor(const Tensor&, const Tensor&, at::IntArrayRef);

Tensor call(const char* name, const Tensor& a, const Tensor& b, const Rows& rows) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Operation>().call(a, b,
                                                                                          rows);
}

struct GroupedProducts {
  Tensor out, dx, dweight;
};

/// The products of x (N, in), weight (G, out, in) and grad (N, out) that a layer of experts needs.
GroupedProducts by_dispatcher(const Tensors& in, const Rows& rows) {
  return {call("titan::grouped_mm", in[0], in[1].transpose(1, 2), rows),
          call("titan::grouped_mm", in[2], in[1], rows),
          call("titan::grouped_mm_weight_grad", in[2], in[0], rows)};
}

/// The same in double.
GroupedProducts exact(const Tensors& in, const Rows& rows) {
  Tensors wide;
  for (const Tensor& x : in) wide.push_back(x.to(at::kDouble));
  const Tensor &x = wide[0], &weight = wide[1], &grad = wide[2];
  GroupedProducts all = {at::zeros(grad.sizes(), at::kDouble), at::zeros(x.sizes(), at::kDouble),
                         at::zeros(weight.sizes(), at::kDouble)};
  int64_t first = 0;
  for (size_t i = 0; i < rows.size(); first += rows[i++]) {
    const auto group = static_cast<int64_t>(i);
    const auto part = [&](const Tensor& t) { return t.narrow(0, first, rows[i]); };
    part(all.out).copy_(part(x).matmul(weight[group].t()));
    part(all.dx).copy_(part(grad).matmul(weight[group]));
    all.dweight[group].copy_(part(grad).t().matmul(part(x)));
  }
  return all;
}

Tensors operands(const Rows& rows, int64_t in, int64_t out, at::ScalarType type) {
  int64_t count = 0;
  for (const int64_t n : rows) count += n;
  return {random({count, in}, type), random({static_cast<int64_t>(rows.size()), out, in}, type),
          random({count, out}, type)};
}

/// Odd sizes, more rows and columns than a tile, empty groups.
const Rows kUneven = {0, 301, 1, 0, 17, 0};
constexpr int64_t kWide = 531, kNarrow = 43;

void expect_close(const GroupedProducts& found, const Tensors& in, const Rows& rows,
                  double relative, double absolute) {
  const GroupedProducts right = exact(in, rows);
  for (const auto& [a, b] : {std::pair(found.out, right.out), std::pair(found.dx, right.dx),
                             std::pair(found.dweight, right.dweight)}) {
    ASSERT_EQ(a.sizes(), b.sizes());
    EXPECT_TRUE(a.is_contiguous());
    EXPECT_EQ(a.scalar_type(), in[0].scalar_type());
    EXPECT_TRUE(a.to(at::kDouble).allclose(b, relative, absolute))
        << (a.to(at::kDouble) - b).abs().max().item<double>();
  }
}

TEST(GroupedMm, SumsInFloat) {
  for (const auto& [in, out] : {std::pair(kWide, kNarrow), std::pair(kNarrow, kWide)}) {
    const Tensors inputs = operands(kUneven, in, out, at::kFloat);
    expect_close(by_dispatcher(inputs, kUneven), inputs, kUneven, 1e-5, 1e-4);
  }
}

TEST(GroupedMm, RoundsSumsOfSixteenBitsOnce) {
  for (const auto& [type, unit] : {std::pair(at::kBFloat16, 0x1p-8), std::pair(at::kHalf, 0x1p-11)})
    for (const auto& [in, out] : {std::pair(kWide, kNarrow), std::pair(kNarrow, kWide)}) {
      const Tensors inputs = operands(kUneven, in, out, type);
      expect_close(by_dispatcher(inputs, kUneven), inputs, kUneven, 1.01 * unit, 1e-3);
    }
}

TEST(GroupedMm, IsTheProductPerGroupForDoubles) {
  const Tensors in = operands(kUneven, kWide, kNarrow, at::kDouble);
  const GroupedProducts found = by_dispatcher(in, kUneven);
  EXPECT_TRUE(found.out.equal(grouped_mm_by_groups(in[0], in[1].transpose(1, 2), kUneven)));
  EXPECT_TRUE(found.dweight.equal(grouped_mm_weight_grad_by_groups(in[2], in[0], kUneven)));
  expect_close(found, in, kUneven, 1e-12, 1e-12);
}

TEST(GroupedMm, HasTheSameBitsForAnyNumberOfThreads) {
  // one tile, a tile for each group, several
  for (const Rows& rows : {Rows{40}, Rows(24, 5), kUneven}) {
    const Tensors in = operands(rows, kWide, kNarrow, at::kFloat);
    const auto layer = [&](const Tensors& t) -> Tensors {
      return {grouped_linear(t[0], t[1], rows)};
    };
    expect_same_for_any_number_of_threads(layer, {in[0], in[1]});
  }
}

TEST(GroupedMm, TakesColumnsOfWiderRows) {
  const Rows rows = {3, 0, 6};
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const Tensors wide = operands(rows, 40, 24, type);
    const Tensors in = {wide[0].narrow(1, 3, 30), wide[1].narrow(2, 5, 30), wide[2]};
    expect_close(by_dispatcher(in, rows), in, rows, type == at::kFloat ? 1e-5 : 0x1.02p-8, 1e-4);
  }
}

TEST(GroupedMm, NoRowsGiveNothingAndZeroGradients) {
  const Rows none = {0, 0};
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const Tensors in = operands(none, 8, 5, type);
    expect_close(by_dispatcher(in, none), in, none, 0, 0);
  }
}

TEST(GroupedMm, KnowsItsShapesWithoutMemory) {
  const Rows rows = {3, 0, 6};
  const Tensors in = operands(rows, 8, 5, at::kDouble);
  expect_meta_like_real(
      [&](const Tensors& t) -> Tensors { return {grouped_linear(t[0], t[1], rows)}; },
      {in[0], in[1]});
}

TEST(GroupedMm, WalksThroughGroupsThatHaveRows) {
  const auto found = rows_of_groups(Rows{0, 2, 0, 3});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].group, 1);
  EXPECT_EQ(found[0].first, 0);
  EXPECT_EQ(found[0].count, 2);
  EXPECT_EQ(found[1].group, 3);
  EXPECT_EQ(found[1].first, 2);
  EXPECT_EQ(found[1].count, 3);
}

}  // namespace
}  // namespace titan::ops::testing::grouped_mm_test
