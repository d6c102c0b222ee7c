// Axes that parallelisms add and borrow, and the resulting groups.
#include <titan/dist/grid.h>

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <titan/axes.h>
#include <titan/error.h>

namespace titan::dist {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ranks = std::vector<int>;

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return error.message();
  }
  return "nothing was refused";
}

TEST(Grid, LaysRanksOutRowMajorWithTheTensorAxisFastest) {
  const Grid grid(MeshShape{.pp = 2, .dp_replicate = 2, .dp_shard = 3, .cp = 2, .tp = 2});
  EXPECT_EQ(grid.coordinates(29), (std::vector<int64_t>{1, 0, 1, 0, 1}));
  EXPECT_EQ(grid.ranks(29, "fsdp"), (Ranks{25, 27, 29, 31, 33, 35}));
  EXPECT_EQ(grid.size("loss"), 12);
  EXPECT_EQ(grid.batch(), 6);
  EXPECT_TRUE(grid.spans("fsdp", "cp") && !grid.spans("cp", "fsdp"));
}

TEST(Grid, BorrowsTheInnermostRanksOfAnAxis) {
  Grid grid(MeshShape{.dp_shard = 4, .tp = 2});
  grid.borrow("experts", 2, {"dp_shard"});
  EXPECT_EQ(grid.world_size(), 8);
  EXPECT_EQ(grid.ranks(5, "dp_shard"), (Ranks{1, 3, 5, 7}));  // existing axes stay the same
  EXPECT_EQ(grid.ranks(5, "experts"), (Ranks{5, 7}));
  EXPECT_EQ(grid.ranks(5, "fsdp-experts"), (Ranks{1, 5}));
  EXPECT_EQ(grid.complement("fsdp", {"experts"}), "fsdp-experts");
  EXPECT_EQ(grid.complement("fsdp", {"tp"}), "fsdp");
  EXPECT_EQ(grid.size("dp_replicate"), 1);
  EXPECT_EQ(grid.axes().back().name, "experts");
  EXPECT_TRUE(grid.axes().back().is_borrowed);
}

TEST(Grid, BorrowsAcrossAxesFromTheInnermostOn) {
  Grid grid(MeshShape{.dp_replicate = 2, .dp_shard = 4, .cp = 2, .tp = 2});
  grid.borrow("experts", 8, {"tp", "cp", "dp_shard"});
  EXPECT_EQ(grid.ranks(0, "experts"), (Ranks{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(grid.ranks(0, "fsdp-experts"), (Ranks{0, 8}));
  EXPECT_EQ(grid.size("dp_replicate"), 2);
  EXPECT_EQ(grid.ranks(9, "world-experts"), (Ranks{1, 9, 17, 25}));
  // all shards are borrowed: the complement is this rank alone
  Grid all(MeshShape{.dp_shard = 4});
  all.borrow("experts", 4, {"dp_shard"});
  EXPECT_EQ(all.ranks(2, "fsdp-experts"), (Ranks{2}));
}

TEST(Grid, SeveralMayBorrowTheSameRanks) {
  Grid grid(MeshShape{.dp_shard = 8});
  grid.borrow("a", 2, {"dp_shard"});
  grid.borrow("b", 4, {"dp_shard"});
  EXPECT_EQ(grid.ranks(5, "a"), (Ranks{4, 5}));
  EXPECT_EQ(grid.ranks(5, "b"), (Ranks{4, 5, 6, 7}));
  EXPECT_EQ(grid.complement("fsdp", {"a", "b"}), "fsdp-b");
  EXPECT_EQ(grid.ranks(5, "fsdp-b"), (Ranks{1, 5}));
  EXPECT_EQ(grid.ranks(5, "a-b"), (Ranks{5})) << "b takes all of a";
}

TEST(Grid, EveryGroupPartitionsTheWorld) {
  Grid grid(MeshShape{.pp = 2, .dp_replicate = 2, .dp_shard = 6, .cp = 2});
  grid.borrow("a", 4, {"cp", "dp_shard"});
  grid.add("b", 3);
  grid.borrow("c", 6, {"dp_shard"});
  EXPECT_EQ(grid.world_size(), 2 * 2 * 6 * 2 * 3);
  for (const std::string& name : grid.names()) {
    std::set<Ranks> groups;
    for (int rank = 0; rank < grid.world_size(); ++rank) {
      const Ranks group = grid.ranks(rank, name);
      EXPECT_TRUE(std::is_sorted(group.begin(), group.end()));
      EXPECT_NE(std::find(group.begin(), group.end(), rank), group.end()) << name;
      EXPECT_EQ(static_cast<int64_t>(group.size()), grid.size(name)) << name;
      groups.insert(group);
    }
    EXPECT_EQ(static_cast<int64_t>(groups.size()) * grid.size(name), grid.world_size()) << name;
  }
}

TEST(Grid, AnAddedAxisHasRanksOfItsOwnWithTheSameRows) {
  Grid grid(MeshShape{.dp_shard = 2, .tp = 2});
  grid.add("depth", 3);
  EXPECT_EQ(grid.world_size(), 12);
  EXPECT_EQ(grid.batch(), 2);
  EXPECT_EQ(grid.ranks(0, "depth"), (Ranks{0, 2, 4}));
  EXPECT_EQ(grid.ranks(0, "dp_shard"), (Ranks{0, 6}));
  EXPECT_EQ(grid.size("world"), 12);
}

TEST(Grid, SaysWhichDegreesArePossible) {
  Grid grid(MeshShape{.dp_shard = 6, .tp = 2});
  EXPECT_EQ(refusal([&] {
              grid.borrow("experts", 8, {"tp", "dp_shard"});
            }),
            "axis 'experts' cannot have 8 of the 12 ranks along dp_shard x tp; possible: 1, 2, 4, "
            "6, 12");
  EXPECT_THAT(refusal([&] { grid.borrow("experts", 2, {"ep"}); }),
              HasSubstr("cannot borrow from 'ep'"));
  EXPECT_THAT(refusal([&] { grid.derive("tp", {"cp"}); }), HasSubstr("'tp' already"));
  EXPECT_THAT(refusal([&] { grid.borrow("none", 0, {"tp"}); }), HasSubstr("cannot have 0 ranks"));
}

TEST(AxisPlan, NamesTheOptionThatHoldsTheDegree) {
  AxisPlan plan;
  plan.borrow("experts", 3, {"dp_shard"}, "experts_over");
  Grid grid(MeshShape{.dp_shard = 4});
  EXPECT_EQ(refusal([&] { plan.apply(grid); }),
            "option 'experts_over': axis 'experts' cannot have 3 of the 4 ranks along dp_shard; "
            "possible: 1, 2, 4");
  plan = {};
  plan.add("depth", 3);
  plan.derive("deep", {"depth", "tp"});
  plan.apply(grid);
  EXPECT_EQ(plan.num_added_ranks(), 3);
  EXPECT_EQ(grid.size("deep"), 3);
}

}  // namespace
}  // namespace titan::dist
