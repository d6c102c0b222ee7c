#include <titan/runs/timeline.h>

#include <gtest/gtest.h>

#include "plugins/commands/report/timeline_data.h"

namespace titan::commands {
namespace {

/// Two ranks with `num_microbatches`; each has a forward of 1 s and a backward of 2 s.
std::vector<RankTimeline> two_ranks(int num_microbatches) {
  std::vector<RankTimeline> ranks(2);
  for (int rank = 0; rank < 2; ++rank) {
    RankTimeline& one = ranks[static_cast<size_t>(rank)];
    one.rank = rank;
    one.plan = {"GPipe", rank, 2, 2, num_microbatches, {}};
    for (const char* kind : {"F", "B"})
      for (int m = 0; m < num_microbatches; ++m)
        one.plan.actions.push_back(std::to_string(rank) + kind + std::to_string(m));
    one.plan.actions.push_back(std::to_string(rank) + "SEND_F0");
    one.steps.push_back({5, 100, {}});
    const std::string stage = std::to_string(rank);
    one.steps[0].spans = {
        {"forward", "forward of stage " + stage + ", microbatch 0 (" + stage + "F0)", 0, 1.5, 0.5},
        {"backward", "backward (" + stage + "B0)", 2, 4, 0},
        {"optimizer", "update", 4, 5, 0}};
  }
  return ranks;
}

TEST(ParsedTimeline, HasTheTrafficOfAStep) {
  const RankTimeline found = parse_timeline(
      R"({"step":1,"begin":5.0,"spans":[],"traffic":[{"group":"tp","operation":"send","calls":2,"bytes":9}]})"
      "\n"
      R"({"step":2,"begin":6.0,"spans":[]})"
      "\n"
      R"({"step":3,"begin":7.0,"spans":[],"traffic":[{"group":"tp","operation":"send","calls":"2","bytes":9}]})"
      "\n",
      0);
  ASSERT_EQ(found.steps.size(), 2u);
  ASSERT_EQ(found.steps[0].traffic.size(), 1u);
  EXPECT_EQ(found.steps[0].traffic[0].group, "tp");
  EXPECT_EQ(found.steps[0].traffic[0].operation, "send");
  EXPECT_EQ(found.steps[0].traffic[0].calls, 2);
  EXPECT_EQ(found.steps[0].traffic[0].bytes, 9);
  EXPECT_TRUE(found.steps[1].traffic.empty());  // the format of earlier versions
  EXPECT_EQ(found.num_unreadable, 1);
}

TEST(PlannedTimeline, TakesTheSchedulesOrderAndMeasuredTimesWithoutWaiting) {
  const auto planned = planned_timeline(two_ranks(2), 5);
  ASSERT_EQ(planned.size(), 2u);
  EXPECT_EQ(planned[0][0].name, "0F0");
  EXPECT_EQ(planned[0][0].end, 1);  // 1.5 s, of which 0.5 s were waiting
  EXPECT_EQ(planned[1][0].begin, 1);
  EXPECT_EQ(planned[1].back().name, "1B1");
  EXPECT_EQ(planned[1].back().end, 3 + 2 * 2);
  EXPECT_EQ(planned[0].back().end, 9);
  EXPECT_EQ(planned[0].size(), 4u);  // no transfers
}

TEST(PlannedTimeline, HasEveryRoundOfAccumulatedGradients) {
  auto ranks = two_ranks(1);
  const double once = planned_timeline(ranks, 5)[0].back().end;
  for (RankTimeline& rank : ranks)
    for (int i = 0; i < 2; ++i)
      rank.steps[0].spans.push_back(rank.steps[0].spans[static_cast<size_t>(i)]);
  const auto planned = planned_timeline(ranks, 5);
  EXPECT_EQ(planned[0].size(), 4u);
  EXPECT_DOUBLE_EQ(planned[0].back().end, 2 * once);
}

TEST(PlannedTimeline, IsEmptyWhenItCannotBeKnown) {
  EXPECT_TRUE(planned_timeline({}, 5).empty());
  EXPECT_TRUE(planned_timeline(two_ranks(2), 6).empty());  // not measured
  auto ranks = two_ranks(2);
  ranks.pop_back();  // a rank of the pipeline is missing
  EXPECT_TRUE(planned_timeline(ranks, 5).empty());
  ranks = two_ranks(2);
  ranks[1].plan.actions[0] = "9F0";
  EXPECT_TRUE(planned_timeline(ranks, 5).empty());
  ranks = two_ranks(2);
  for (RankTimeline& rank : ranks)
    rank.plan.num_microbatches = 1 << 20, rank.plan.num_stages = 1 << 19;
  EXPECT_TRUE(planned_timeline(ranks, 5).empty());
}

TEST(RankTimelines, OfAStepThatWasDoneAgainTheLastCounts) {
  const RankTimeline timeline = parse_timeline(
      "{\"plan\":null}\n{\"step\":5,\"begin\":1,\"spans\":[]}\n{\"plan\":null}\n"
      "{\"step\":5,\"begin\":9,\"spans\":[{\"phase\":\"data\",\"name\":\"\",\"begin\":0,\"end\":2}]"
      "}\n"
      "{\"step\":4,\"begin\":8,\"spans\":[{\"phase\":\"data\",\"name\":\"\",\"begin\":3,\"end\":2}]"
      "}\n"
      "{\"step\":7,",
      3);
  ASSERT_EQ(timeline.steps.size(), 1u);
  EXPECT_EQ(timeline.steps[0].begin, 9);
  EXPECT_EQ(timeline.num_unreadable, 1);  // a span with end < begin; the torn line does not count
  EXPECT_TRUE(timeline.plan.actions.empty());
}

TEST(TimelineData, KeepsFirstAndLastStepWhenThereIsNoRoomForAll) {
  auto ranks = two_ranks(1);
  for (RankTimeline& rank : ranks)
    for (int64_t step = 6; step <= 20; ++step) {
      rank.steps.push_back(rank.steps[0]);
      rank.steps.back().step = step;
    }
  const int64_t of_one_step = 2 * (3 + 3);  // spans and planned actions
  const Value data = timeline_data(ranks, 4 * of_one_step);
  std::vector<int64_t> steps;
  for (const Value& step : data.at("steps").as_list())
    steps.push_back(step.at("step").as_integer());
  EXPECT_EQ(steps, (std::vector<int64_t>{5, 10, 15, 20}));
  EXPECT_EQ(data.at("num_steps").as_integer(), 16);
  EXPECT_TRUE(timeline_data({}, 100).is_null());
}

TEST(TimelineData, OfAStepThatIsTooLargeTheFirstRanksAreKept) {
  const Value data = timeline_data(two_ranks(1), 3);
  ASSERT_EQ(data.at("steps").as_list().size(), 1u);
  EXPECT_EQ(data.at("steps").as_list()[0].at("ranks").as_list().size(), 1u);
  EXPECT_EQ(data.at("num_ranks").as_integer(), 2);
}

TEST(TimelineData, RanksStandOnOneClock) {
  auto ranks = two_ranks(1);
  ranks[1].steps[0].begin = 100.25;
  const Value data = timeline_data(ranks, 1000);
  const Value& rows = data.at("steps").as_list()[0].at("ranks");
  EXPECT_EQ(rows.as_list()[0].at("spans").as_list()[0].as_list()[2].as_number(), 0);
  EXPECT_EQ(rows.as_list()[1].at("spans").as_list()[0].as_list()[2].as_number(), 0.25);
}

}  // namespace
}  // namespace titan::commands
