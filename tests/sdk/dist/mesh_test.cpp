#include <titan/dist/mesh.h>

#include <set>

#include <gtest/gtest.h>

namespace titan::dist {
namespace {

using Ranks = std::vector<int>;
const MeshShape kShape = {.pp = 2, .dp_replicate = 2, .dp_shard = 3, .cp = 2, .tp = 2};

TEST(Mesh, LaysRanksOutRowMajorWithTheTensorAxisFastest) {
  // rank 29 of 48: pp 1, replicate 0, shard 1, cp 0, tp 1
  EXPECT_EQ(Grid(kShape).ranks(29, "tp"), (Ranks{28, 29}));
  EXPECT_EQ(Grid(kShape).ranks(29, "cp"), (Ranks{29, 31}));
  EXPECT_EQ(Grid(kShape).ranks(29, "dp_shard"), (Ranks{25, 29, 33}));
  EXPECT_EQ(Grid(kShape).ranks(29, "dp_replicate"), (Ranks{29, 41}));
  EXPECT_EQ(Grid(kShape).ranks(29, "pp"), (Ranks{5, 29}));
  EXPECT_EQ(Grid(kShape).ranks(29, "fsdp"), (Ranks{25, 27, 29, 31, 33, 35}));
  EXPECT_EQ(Grid(kShape).ranks(29, "dp"), (Ranks{25, 29, 33, 37, 41, 45}));
  EXPECT_EQ(Grid(kShape).ranks(29, "loss").size(), 12u);
  EXPECT_EQ(Grid(kShape).ranks(29, "world").size(), 48u);
}

TEST(Mesh, GroupsOfEachNamePartitionTheWorld) {
  for (const char* name :
       {"world", "pp", "dp_replicate", "dp_shard", "cp", "tp", "dp", "fsdp", "loss"}) {
    std::set<Ranks> groups;
    for (int rank = 0; rank < kShape.world_size(); ++rank) {
      const Ranks group = Grid(kShape).ranks(rank, name);
      EXPECT_NE(std::find(group.begin(), group.end(), rank), group.end());
      groups.insert(group);
    }
    size_t total = 0;
    for (const Ranks& group : groups) total += group.size();
    EXPECT_EQ(total, 48u) << name;
  }
}

TEST(Mesh, ConnectsEachSetOfRanksOnce) {
  std::vector<Ranks> connected;
  const auto connect = [&](const std::string&, const Ranks& ranks) {
    connected.push_back(ranks);
    return make_fake_backend(0, static_cast<int>(ranks.size()));
  };
  const Mesh mesh(MeshShape{.dp_shard = 4}, 0, connect);
  EXPECT_EQ(connected, (std::vector<Ranks>{{0, 1, 2, 3}}));  // world = dp_shard = dp = fsdp = loss
  EXPECT_EQ(mesh.group("fsdp").size(), 4);
  EXPECT_EQ(mesh.group("tp").size(), 1);
  EXPECT_EQ(mesh.batch_rank(), 0);
}

TEST(Mesh, OfOneRankConnectsNothing) {
  const Mesh mesh;
  EXPECT_EQ(mesh.group("world").size(), 1);
  EXPECT_EQ(mesh.rank(), 0);
}

}  // namespace
}  // namespace titan::dist
