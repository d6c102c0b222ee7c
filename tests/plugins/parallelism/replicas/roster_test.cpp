// Which groups train, wait and are refused; how rows are assigned; who takes state from whom.
#include "plugins/parallelism/replicas/roster.h"

#include <gtest/gtest.h>
#include <titan/error.h>

namespace titan::replicas {
namespace {

Member group(int64_t replica, const std::string& epoch = "", const std::string& identity = "same",
             const std::string& start = "a") {
  return {.id = "replica_" + std::to_string(replica) + ":" + start,
          .data = to_value(GroupData{.replica = replica, .identity = identity, .epoch = epoch})};
}

std::vector<std::string> ids(const std::vector<Member>& members) {
  std::vector<std::string> ids;
  for (const Member& member : members) ids.push_back(member.id);
  return ids;
}

using Ids = std::vector<std::string>;

TEST(ReplicaRoster, PutsGroupsThatTrainBeforeThoseThatCome) {
  const Roster roster = roster_of({.members = {group(0), group(2, "7"), group(3, "7")}}, 0);
  EXPECT_EQ(ids(roster.members), (Ids{"replica_2:a", "replica_3:a", "replica_0:a"}));
  EXPECT_EQ(roster.place_of("replica_3:a"), 1u);
  EXPECT_EQ(roster.place_of("replica_1:a"), std::nullopt);
  EXPECT_TRUE(roster.refused.empty());
}

TEST(ReplicaRoster, KeepsGroupsBeyondTheGreatestNumberAsSpares) {
  const Roster roster = roster_of({.members = {group(0), group(1, "7"), group(2, "7")}}, 2);
  EXPECT_EQ(ids(roster.members), (Ids{"replica_1:a", "replica_2:a"}));
  EXPECT_EQ(ids(roster.spares), (Ids{"replica_0:a"}));
}

TEST(ReplicaRoster, RefusesWhatDiffersFromTheGroupsThatTrain) {
  Member other_ranks = group(4);
  other_ranks.data["world_size"] = 2;
  const Roster roster = roster_of({.members = {group(0, "", "other"), group(1, "7"), group(2, "7"),
                                               group(2, "", "same", "b"), other_ranks}},
                                  0);
  EXPECT_EQ(ids(roster.members), (Ids{"replica_1:a", "replica_2:a"}));
  ASSERT_EQ(roster.refused.size(), 3u);
  EXPECT_EQ(roster.refused[0].member.id, "replica_0:a");
  EXPECT_NE(roster.refused[0].reason.find("settings are not those"), std::string::npos);
  EXPECT_EQ(roster.refused[1].member.id, "replica_2:b");
  EXPECT_NE(roster.refused[1].reason.find("'replica_2:a' has fault_tolerance.replica_id = 2 too"),
            std::string::npos);
  EXPECT_NE(roster.refused[2].reason.find("it has 2 ranks, the others have 1"), std::string::npos);
}

TEST(ReplicaRoster, ConnectsAnewWhenMembersChangeOrHaveFailed) {
  const Ids connected = {"replica_1:a", "replica_0:a"};
  const auto must = [&](Member first, Member second) {
    return must_connect(roster_of({.members = {std::move(first), std::move(second)}}, 0), connected,
                        "7");
  };
  EXPECT_FALSE(must(group(0, "7"), group(1, "7")));
  EXPECT_TRUE(must(group(0, "7"), group(2, "7")));
  EXPECT_TRUE(must(group(0, "7"), group(1, "6")));
  EXPECT_TRUE(must(group(0, "7"), group(1, "7", "same", "b")));
  Member failed = group(1, "7");
  failed.commit_failures = 1;
  EXPECT_TRUE(must(group(0, "7"), failed));
  EXPECT_TRUE(must_connect(roster_of({.members = {group(0, "7")}}, 0), connected, "7"));
}

TEST(ReplicaRows, AreAssignedInBlocksOfRounds) {
  for (const int64_t per_round : {1, 2, 4})
    for (const int64_t rounds : {1, 3, 7, 12})
      for (const size_t members : {1u, 2u, 3u, 5u}) {
        int64_t next = 0;
        for (size_t place = 0; place < members; ++place) {
          const Rows rows = rows_of(rounds * per_round, per_round, place, members);
          EXPECT_EQ(rows.first, next);
          EXPECT_EQ(rows.count % per_round, 0);
          EXPECT_GE(rows.count / per_round, rounds / static_cast<int64_t>(members));
          next += rows.count;
        }
        EXPECT_EQ(next, rounds * per_round);
      }
}

using Sources = std::vector<std::optional<size_t>>;

TEST(ReplicaState, IsThatOfTheGreatestStepWhichMostHold) {
  EXPECT_EQ(sources_of({{5, "a"}, {5, "a"}}, 0), (Sources{{}, {}}));
  EXPECT_EQ(sources_of({{4, "a"}, {5, "b"}, {5, "b"}}, 0), (Sources{1, {}, {}}));
  EXPECT_EQ(sources_of({{5, "x"}, {5, "b"}, {5, "b"}}, 0), (Sources{1, {}, {}}));
  EXPECT_EQ(sources_of({{5, "x"}, {5, "b"}}, 0), (Sources{{}, 0}));
  // an interrupted transfer is no state, however far it is
  EXPECT_EQ(sources_of({{9, "x", false}, {5, "b"}}, 0), (Sources{1, {}}));
  EXPECT_TRUE(sources_of({{9, "x", false}, {9, "x", false}}, 0).empty());
}

TEST(ReplicaState, ComesFromSourcesInTurn) {
  const std::vector<Progress> all = {{5, "a"}, {0, "s"}, {0, "s"}, {5, "a"}, {0, "s"}};
  EXPECT_EQ(sources_of(all, 0), (Sources{{}, 0, 3, {}, 0}));
  EXPECT_EQ(sources_of(all, 1), (Sources{{}, 3, 0, {}, 3}));
}

TEST(ReplicaRoster, IgnoresMembersOfOtherPrograms) {
  const Member other{.id = "ddp_0:uuid", .data = Value::map({})};
  const Roster roster = roster_of({.members = {other, group(0), group(1)}}, 0);
  EXPECT_EQ(ids(roster.members), (Ids{"replica_0:a", "replica_1:a"}));
  EXPECT_EQ(roster.ignored, (Ids{"ddp_0:uuid"}));
  const Member newer{.id = "replica_0:uuid", .data = Value::map({{"titan", 2}})};
  EXPECT_THROW(data_of(newer), Error);
}

}  // namespace
}  // namespace titan::replicas
