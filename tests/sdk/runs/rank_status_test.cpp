#include <titan/runs/rank_status.h>

#include <cmath>

#include <gtest/gtest.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan {
namespace {

TEST(RankStatus, WhatIsNotToldIsUnknown) {
  const RankStatus status = parse_rank_status(R"({"rank":3,"loss":null,"step":7}     )");
  EXPECT_EQ(status.rank, 3);
  EXPECT_EQ(status.step, 7);
  EXPECT_EQ(status.steps, -1);
  EXPECT_TRUE(std::isnan(status.loss));
  EXPECT_TRUE(std::isnan(status.communication_share()));
}

TEST(RankStatus, CommunicationIsAShareOfTheStep) {
  EXPECT_DOUBLE_EQ(parse_rank_status(R"({"rank":0,"seconds":{"forward":3,"communication":1}})")
                       .communication_share(),
                   0.25);
}

TEST(RankStatus, FilesOfAllRanksInTheirOrderAndTornOnesNamed) {
  const testing::TestFolder run;
  EXPECT_TRUE(read_rank_statuses(run.path()).ranks.empty());
  for (const char* rank : {"10", "9", "0"})
    run.write(std::string("status/rank_") + rank + ".json",
              std::string(R"({"rank":)") + rank + "}");
  run.write("status/rank_1.json", R"({"rank":1,"st)");
  run.write("status/rank_2.json", R"({"rank":5})");
  run.write("status/rank_x.json", "{}");
  run.write("status/notes", "{}");
  const RankStatuses statuses = read_rank_statuses(run.path());
  ASSERT_EQ(statuses.ranks.size(), 3u);
  EXPECT_EQ(statuses.ranks[1].rank, 9);
  EXPECT_EQ(statuses.ranks[2].rank, 10);
  ASSERT_EQ(statuses.unreadable.size(), 2u);
  EXPECT_TRUE(titan::testing::holds(statuses.unreadable[0], "rank_1.json: "));
  EXPECT_TRUE(titan::testing::holds(statuses.unreadable[1], "it is of rank 5"));
}

}  // namespace
}  // namespace titan
