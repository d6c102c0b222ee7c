#include "core/checkpoint/shard_plan.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace titan::core {
namespace {

TEST(ShardPlan, LeavesATiedWeightToTheStageThatHoldsTheOriginal) {
  const auto held = [](bool is_copy) {
    return std::vector<StateTensor>{
        {"tied", {4, 2}, {{0, 0}, {4, 2}}, at::zeros({4, 2}), {}, false, is_copy}};
  };
  const dist::MeshShape two_stages{.pp = 2};
  EXPECT_EQ(own_part(held(false), two_stages, 0).size(), 1u);
  EXPECT_EQ(own_part(held(true), two_stages, 1).size(), 0u);
}

}  // namespace
}  // namespace titan::core
