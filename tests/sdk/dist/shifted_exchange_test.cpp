// Messages of different sizes and dtypes around a group, bit for bit.
#include <titan/dist/shifted_exchange.h>

#include <string>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>

#include "tests/sdk/dist/thread_ranks.h"

namespace titan::dist {
namespace {

/// Rank r has r tensors of each dtype; rank 0 has none.
TensorMessage message_of(int rank) {
  TensorMessage message = {.text = std::string(static_cast<size_t>(rank), 'x') + "\"\n",
                           .tensors = {}};
  for (int i = 0; i < rank; ++i) {
    message.tensors.push_back(at::arange(7 + i, at::kDouble).mul(rank + 0.1));
    message.tensors.push_back(at::full({3, i}, rank, at::kBFloat16));
    message.tensors.push_back(at::full({}, rank, at::kLong));
    message.tensors.push_back(at::arange(6, at::kFloat).view({2, 3}).t());  // not contiguous
    message.tensors.push_back(at::full({5}, true, at::kBool));
  }
  return message;
}

TEST(ShiftedExchange, GivesTheMessageOfTheRankBelow) {
  for (const int shift : {1, 2})
    testing::run_ranks(MeshShape{.dp_shard = 3}, [&](const Mesh& mesh) {
      const Group& world = mesh.group("world");
      const TensorMessage found =
          exchange_shifted(message_of(world.rank()), shift, world, c10::kCPU);
      const TensorMessage expected = message_of((world.rank() + 3 - shift) % 3);
      EXPECT_EQ(found.text, expected.text);
      ASSERT_EQ(found.tensors.size(), expected.tensors.size());
      for (size_t i = 0; i < expected.tensors.size(); ++i) {
        EXPECT_EQ(found.tensors[i].scalar_type(), expected.tensors[i].scalar_type());
        EXPECT_TRUE(at::equal(found.tensors[i], expected.tensors[i])) << i;
      }
    });
}

}  // namespace
}  // namespace titan::dist
