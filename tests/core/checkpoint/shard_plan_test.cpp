#include "core/checkpoint/shard_plan.h"

#include <algorithm>
#include <map>

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "core/runtime/groups/process_groups.h"

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

TEST(ShardPlan, WritesEveryElementOnceWhoeverCutsIt) {
  dist::Grid grid(dist::MeshShape{.pp = 2, .dp_replicate = 2, .dp_shard = 4, .tp = 2});
  grid.borrow("experts", 4, {"tp", "dp_shard"});
  grid.add("depth", 3);
  const std::vector<std::vector<const char*>> layouts = {
      {}, {"fsdp"}, {"experts"}, {"experts", "fsdp-experts"}, {"depth", "tp"}};
  std::map<size_t, int64_t> written;  // elements of each tensor
  std::vector<int64_t> of_rank;
  for (int rank = 0; rank < grid.world_size() / 2; ++rank) {
    const dist::Mesh mesh = fake_mesh(grid, rank);
    std::vector<StateTensor> state;
    for (size_t i = 0; i < layouts.size(); ++i) {
      nn::Parameter parameter({97}, nn::Init::constant(0));
      for (const char* group : layouts[i]) parameter.shard_over(0, mesh.group(group));
      state.push_back({std::to_string(i),
                       {97},
                       parameter.slice(),
                       at::zeros(parameter.slice().sizes),
                       parameter.shardings()});
    }
    int64_t own = 0;
    for (const StateTensor& tensor : own_part(state, grid, rank)) {
      written[std::stoul(tensor.name)] += tensor.slice.num_elements();
      own += tensor.slice.num_elements();
    }
    of_rank.push_back(own);
  }
  for (size_t i = 0; i < layouts.size(); ++i) EXPECT_EQ(written[i], 97) << i;
  EXPECT_LE(*std::max_element(of_rank.begin(), of_rank.end()), 97);  // no rank writes all elements
}

}  // namespace
}  // namespace titan::core
