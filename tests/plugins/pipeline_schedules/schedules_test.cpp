// The schedules' tables, compared with tables of PyTorch 2.11 (without idle slots);
// tests/referee/pipeline_schedule_referee.py checks many more.
#include <gtest/gtest.h>

#include <titan/pipelines/table_csv.h>

#include "tests/core/pipeline/pipeline_fixture.h"

namespace titan::pipeline_schedules {
namespace {

std::string table(const char* name, PipelineShape shape) {
  return to_csv(core::schedule_named(name)->plan(shape));
}

TEST(PipelineSchedules, GPipeRunsAllForwardsFirst) {
  EXPECT_EQ(table("GPipe", {2, 2, 3}), "0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1F1,1F2,1B0,1B1,1B2\n");
}

TEST(PipelineSchedules, OneForwardOneBackwardTakesTurns) {
  EXPECT_EQ(table("1F1B", {3, 3, 4}),
            "0F0,0F1,0F2,0B0,0F3,0B1,0B2,0B3\n"
            "1F0,1F1,1B0,1F2,1B1,1F3,1B2,1B3\n"
            "2F0,2B0,2F1,2B1,2F2,2B2,2F3,2B3\n");
}

TEST(PipelineSchedules, Interleaved1F1BEqualsTheGoldenTables) {
  EXPECT_EQ(table("Interleaved1F1B", {2, 4, 4}),
            "0F0,0F1,2F0,2F1,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,2B2,2B3,0B2,0B3\n"
            "1F0,1F1,3F0,3B0,3F1,3B1,1F2,1B0,1F3,1B1,3F2,3B2,3F3,3B3,1B2,1B3\n");
  const std::string four = table("Interleaved1F1B", {4, 8, 4});
  EXPECT_TRUE(
      four.starts_with("0F0,0F1,0F2,0F3,4F0,4F1,4F2,4F3,4B0,4B1,4B2,4B3,0B0,0B1,0B2,0B3\n"));
  EXPECT_TRUE(
      four.ends_with("\n3F0,3F1,3F2,3F3,7F0,7B0,7F1,7B1,7F2,7B2,7F3,7B3,3B0,3B1,3B2,3B3\n"));
}

TEST(PipelineSchedules, LoopedBfsEqualsTheGoldenTable) {
  EXPECT_EQ(table("LoopedBFS", {2, 4, 4}),
            "0F0,0F1,0F2,0F3,2F0,2F1,2F2,2F3,2B3,2B2,2B1,2B0,0B3,0B2,0B1,0B0\n"
            "1F0,1F1,1F2,1F3,3F0,3F1,3F2,3F3,3B3,3B2,3B1,3B0,1B3,1B2,1B1,1B0\n");
}

TEST(PipelineSchedules, InterleavedZeroBubbleEqualsTheGoldenTable) {
  EXPECT_EQ(table("InterleavedZeroBubble", {2, 4, 4}),
            "0F0,0F1,2F0,2F1,2I0,2W0,0F2,2I1,2W1,0F3,0I0,0W0,2F2,0I1,0W1,2F3,2I2,2W2,2I3,2W3,0I2,"
            "0W2,0I3,0W3\n"
            "1F0,1F1,3F0,3I0,3F1,3I1,3W0,1F2,1I0,3W1,1F3,1I1,1W0,3F2,3I2,1W1,3F3,3I3,3W2,1I2,3W3,"
            "1I3,1W2,1W3\n");
}

TEST(PipelineSchedules, ZbvZeroBubbleEqualsTheGoldenTable) {
  EXPECT_EQ(table("ZBVZeroBubble", {2, 4, 4}),
            "0F0,0F1,0F2,3F0,3I0,3W0,3F1,3I1,3W1,0F3,0I0,0W0,3F2,3I2,3W2,0I1,0W1,3F3,3I3,3W3,0I2,"
            "0W2,0I3,0W3\n"
            "1F0,2F0,1F1,2F1,2I0,2W0,1F2,1I0,1W0,2F2,2I1,2W1,1F3,1I1,1W1,2F3,2I2,2W2,1I2,2I3,1I3,"
            "1W2,2W3,1W3\n");
}

TEST(PipelineSchedules, DualPipeVEqualsTheGoldenTable) {
  EXPECT_EQ(table("DualPipeV", {2, 4, 4}),
            "0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1)OVERLAP_F_B,(3F2;0B0)OVERLAP_F_B,3B2,"
            "(3F3;0B1)OVERLAP_F_B,3B3,0I2,0W2,0I3,0W3\n"
            "1F0,2F0,1F1,2F1,1F2,2B0,(2F2;1B0)OVERLAP_F_B,(1F3;2B1)OVERLAP_F_B,"
            "(2F3;1B1)OVERLAP_F_B,2B2,1B2,2I3,1I3,2W3,1W3\n");
}

TEST(PipelineSchedules, TakeOneOrTwoStagesPerRankUnlessTold) {
  for (const core::NamedSchedule& known : core::all_schedules()) {
    const bool has_one = known.name == "GPipe" || known.name == "1F1B";
    EXPECT_EQ(known.schedule->default_num_stages(4), has_one ? 4 : 8) << known.name;
    EXPECT_EQ(known.schedule->problem({4, has_one ? 4 : 8, 8}), std::nullopt) << known.name;
  }
}

TEST(PipelineSchedules, InterleavedTakesRoundsThatDivideTheMicrobatches) {
  for (const char* name : {"Interleaved1F1B", "InterleavedZeroBubble"}) {
    const auto schedule = core::schedule_named(name);
    EXPECT_EQ(schedule->problem({4, 8, 10}), std::nullopt);  // 2 rounds of 5
    EXPECT_EQ(schedule->problem({4, 8, 3}), std::nullopt);   // 1 round of 3
    EXPECT_EQ(schedule->problem({4, 8, 9}),
              "runs in 2 rounds, whose number does not divide 9 microbatches");
  }
}

}  // namespace
}  // namespace titan::pipeline_schedules
