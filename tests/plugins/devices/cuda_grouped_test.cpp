// Grouped products as a GPU runs them. Runs on the CPU, which has at::_grouped_mm too: compares
// with one ATen product per group, and checks that at::_grouped_mm is used where possible.
#include <atomic>
#include <string>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <titan/ops/grouped_linear.h>

#include "plugins/devices/cuda/composite_ops.h"
#include "tests/sdk/ops/ops_testing.h"

namespace titan::ops::testing {
namespace {

using GroupRowCounts = std::vector<int64_t>;

std::atomic<int> grouped_calls = 0;

std::unique_ptr<at::ObserverContext> count_grouped(const at::RecordFunction& function) {
  if (std::string(function.name()) == "aten::_grouped_mm") ++grouped_calls;
  return nullptr;
}

/// The number of calls of at::_grouped_mm in `run`.
template <class Run>
int calls_in(const Run& run) {
  grouped_calls = 0;
  const auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback(&count_grouped).scopes({at::RecordScope::FUNCTION}));
  run();
  at::removeCallback(handle);
  return grouped_calls;
}

struct GroupedCase {
  int64_t in, out;
  at::ScalarType type;
  int grouped;  ///< of the three products
};

TEST(CudaGroupedMm, IsTheProductPerGroup) {
  const GroupRowCounts rows = {5, 0, 3, 9, 0};
  for (const GroupedCase& c : {GroupedCase{16, 24, at::kBFloat16, 3},
                               {8, 8, at::kHalf, 3},
                               {4, 12, at::kFloat, 3},
                               {6, 24, at::kBFloat16, 0},
                               {16, 10, at::kBFloat16, 0},
                               {16, 24, at::kDouble, 0}}) {
    const Tensor x = random({17, c.in}, c.type), weight = random({5, c.out, c.in}, c.type),
                 grad = random({17, c.out}, c.type);
    Tensor y, dx, dweight;
    EXPECT_EQ(calls_in([&] {
                y = composite::grouped_mm(x, weight.transpose(1, 2), rows);
                dx = composite::grouped_mm(grad, weight, rows);
                dweight = composite::grouped_mm_weight_grad(grad, x, rows);
              }),
              c.grouped)
        << c.in << " " << c.out << " " << c.type;
    const double tolerance = c.type == at::kDouble ? 1e-13 : c.type == at::kFloat ? 1e-5 : 1e-2;
    const Tensor expected[] = {grouped_mm_by_groups(x, weight.transpose(1, 2), rows),
                               grouped_mm_by_groups(grad, weight, rows),
                               grouped_mm_weight_grad_by_groups(grad, x, rows)};
    const Tensor found[] = {y, dx, dweight};
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(found[i].strides(), expected[i].strides()) << i;
      EXPECT_TRUE(found[i].allclose(expected[i], tolerance, tolerance)) << i << c.type;
    }
    EXPECT_EQ(dweight[1].abs().max().item<double>() + dweight[4].abs().max().item<double>(), 0);
  }
}

TEST(CudaGroupedMm, LeavesOperandsThatItCannotCopyToTheProductPerGroup) {
  const GroupRowCounts rows = {2, 4};
  const Tensor wide = random({6, 24}, at::kBFloat16), weight = random({2, 16, 16}, at::kBFloat16);
  const auto product = [&](const Tensor& x) { return composite::grouped_mm(x, weight, rows); };
  EXPECT_EQ(calls_in([&] { product(wide.narrow(1, 8, 16)); }), 1);
  EXPECT_EQ(calls_in([&] { product(wide.narrow(1, 1, 16)); }), 0);  // 2 bytes past alignment
  const Tensor odd_rows = random({6, 18}, at::kBFloat16).narrow(1, 0, 16);
  EXPECT_EQ(calls_in([&] { product(odd_rows); }), 0);
  const Tensor none = random({0, 16}, at::kBFloat16);
  EXPECT_EQ(calls_in([&] { composite::grouped_mm(none, weight, GroupRowCounts{0, 0}); }), 0);
  const GroupRowCounts many(1024, 0);
  const Tensor many_weights = random({1024, 8, 8}, at::kBFloat16);
  EXPECT_EQ(calls_in([&] { composite::grouped_mm(none.narrow(1, 0, 8), many_weights, many); }), 0);
}

}  // namespace
}  // namespace titan::ops::testing
