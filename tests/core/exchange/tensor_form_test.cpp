// Computed tensors get the same form as stored tensors with the same values.
#include "core/exchange/tensor_form.h"

#include <cmath>

#include <gtest/gtest.h>

#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>

#include "core/exchange/tensor_copy.h"
#include "tests/core/checkpoint/stored_files.h"
#include "tests/plugins/error_of.h"

namespace titan::core {
namespace {

using testing::error_of;
using testing::holds;
using testing::TestFolder;
using testing::write_stored;

constexpr RowOrder kOrders[] = {RowOrder::as_stored, RowOrder::pairs_to_halves,
                                RowOrder::halves_to_pairs};

TEST(TensorForm, IsThatOfAStoredTensor) {
  const TestFolder folder;
  for (const at::Tensor& tensor : {at::randn({24, 5}, at::kDouble), at::randn({12}),
                                   at::randn({24, 3, 2}).to(at::kBFloat16)}) {
    const TensorIndex index = index_files({write_stored(folder, "x.safetensors", {{"x", tensor}})});
    TensorStream stream(index);
    for (const RowOrder order : kOrders)
      for (const char* dtype : {"F64", "F32", "BF16", "F16"}) {
        const TensorForm form = {.dtype = dtype, .order = order, .num_heads = 3};
        std::string expected;
        stream.read("x", form, [&](const char* data, int64_t n) { expected.append(data, n); });
        const at::Tensor found = in_form(tensor, form, "x");
        EXPECT_EQ(found.sizes(), tensor.sizes());
        EXPECT_EQ(testing::bytes_of(found), expected) << dtype << static_cast<int>(order);
      }
  }
}

TEST(TensorForm, TakesTensorsThatAreNotRowMajor) {
  const at::Tensor tensor = at::randn({6, 4}).t();
  EXPECT_TRUE(testing::same_bytes(in_form(tensor, {.dtype = "F32"}, "x"), tensor.contiguous()));
}

TEST(TensorForm, RefusesWhatTheTypeCannotHoldAndHeadsThatDoNotDivide) {
  const at::Tensor large = at::full({2, 2}, 70000.0);
  EXPECT_TRUE(holds(error_of([&] { in_form(large, {.dtype = "F16"}, "big"); }).what(),
                    "tensor big holds 70000, which F16 cannot hold; choose another dtype"));
  in_form(at::full({2}, INFINITY), {.dtype = "F16"}, "x");  // an infinity remains infinite
  const TensorForm heads = {.dtype = "F32", .order = RowOrder::halves_to_pairs, .num_heads = 4};
  EXPECT_TRUE(holds(error_of([&] {
                      in_form(at::randn({12, 2}), heads, "odd");
                    }).what(),
                    "tensor odd has 12 rows, which do not divide into 4 heads of even size"));
}

}  // namespace
}  // namespace titan::core
