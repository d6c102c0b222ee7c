// make_plan(): valid tables, invalid tables, and the transfers.
#include "core/pipeline/plan.h"

#include <gtest/gtest.h>

#include <titan/pipelines/table_csv.h>

#include "tests/core/pipeline/pipeline_fixture.h"
#include "tests/plugins/error_of.h"

namespace titan::core {
namespace {

using titan::testing::error_of;
using titan::testing::holds;

/// The error of make_plan for a table; the shape is 2 ranks, 2 stages, 1 microbatch.
std::string plan_refusal(const std::string& table, PipelineShape shape = {2, 2, 1}) {
  const Error error = error_of([&] { make_plan(WrittenSchedule(table), "mine", shape); });
  EXPECT_EQ(error.kind(), ErrorKind::plugin);
  return error.message();
}

TEST(PipelinePlan, SendsBetweenNeighboursAndNothingWithinARank) {
  const PipelinePlan plan = make_plan(*schedule_named("ZBVZeroBubble"), "ZBVZeroBubble", {2, 4, 1});
  EXPECT_EQ(plan.rank_of_stage, (std::vector<int>{0, 1, 1, 0}));
  EXPECT_EQ(to_csv(plan.actions),
            "0F0,0SEND_F0,3RECV_F0,3F0,3I0,3SEND_B0,3W0,0RECV_B0,0I0,0W0\n"
            "1RECV_F0,1F0,2F0,2SEND_F0,2RECV_B0,2I0,2W0,1I0,1SEND_B0,1W0\n");
}

TEST(PipelinePlan, SendsBehindAPairThatOverlaps) {
  const PipelinePlan plan = make_plan(*schedule_named("DualPipeV"), "DualPipeV", {2, 4, 4});
  const std::string text = to_csv(plan.actions);
  EXPECT_TRUE(holds(text, "(0F3;3B1)OVERLAP_F_B,0SEND_F3,3SEND_B1"));
  EXPECT_EQ(to_csv(compute_table(plan)).find("SEND"), std::string::npos);
}

TEST(PipelinePlan, KeepsTheScheduleAsItWasGiven) {
  for (const NamedSchedule& known : all_schedules()) {
    const PipelineShape shape{4, known.schedule->default_num_stages(4), 8};
    EXPECT_EQ(compute_table(make_plan(*known.schedule, known.name, shape)),
              known.schedule->plan(shape))
        << known.name;
  }
}

TEST(PipelinePlan, NamesTheScheduleAndWhatItNeeds) {
  const auto message = [](const char* name, PipelineShape shape) {
    const Error error = error_of([&] { make_plan(*schedule_named(name), name, shape); });
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return error.message();
  };
  EXPECT_EQ(message("GPipe", {2, 4, 4}),
            "schedule 'GPipe' needs exactly 1 stage per rank, but there are 2");
  EXPECT_EQ(message("1F1B", {8, 8, 4}),
            "schedule '1F1B' needs as many microbatches as stages, but there are 4 microbatches "
            "for 8 stages");
  EXPECT_EQ(message("LoopedBFS", {2, 2, 4}),
            "schedule 'LoopedBFS' needs at least 2 stages per rank, but there are 1");
  EXPECT_EQ(message("ZBVZeroBubble", {2, 6, 4}),
            "schedule 'ZBVZeroBubble' needs exactly 2 stages per rank, but there are 3");
  EXPECT_EQ(message("DualPipeV", {2, 4, 3}),
            "schedule 'DualPipeV' needs as many microbatches as stages, but there are 3 "
            "microbatches for 4 stages");
  EXPECT_EQ(
      message("Interleaved1F1B", {2, 4, 5}),
      "schedule 'Interleaved1F1B' runs in 2 rounds, whose number does not divide 5 microbatches");
  EXPECT_EQ(message("GPipe", {2, 3, 4}),
            "a pipeline cannot have 3 stages on 2 ranks with 4 microbatches: stages must be a "
            "multiple of ranks, and there must be at least 1 of each");
  EXPECT_TRUE(holds(message("GPipe", {0, 0, 4}), "a pipeline cannot have 0 stages"));
  EXPECT_TRUE(holds(message("GPipe", {2, 2, 0}), "with 0 microbatches"));
}

TEST(PipelinePlan, ListsWhatIsWrongWithATable) {
  EXPECT_EQ(plan_refusal("0F0\n1F0,1F0,1B0\n"),
            "schedule 'mine' gives a table that cannot run 2 stages on 2 ranks with 1 "
            "microbatches:\n"
            "  rank 1: 1F0 occurs twice\n"
            "  0B0 is missing, or 0I0 and 0W0");
  EXPECT_TRUE(holds(plan_refusal("0F0,0B0\n"), "it has lists for 1 ranks, but there are 2"));
  EXPECT_TRUE(holds(plan_refusal("0F0,0B0\n1B0,1F0\n"), "rank 1: 1B0 is not preceded by 1F0"));
  EXPECT_TRUE(holds(plan_refusal("0F0,0B0\n1F0,1W0,1I0\n"), "rank 1: 1W0 is not preceded by 1I0"));
  EXPECT_TRUE(holds(plan_refusal("0F0,0B0\n1F0,1I0\n"), "1W0 is missing; 1I0 does not include it"));
  EXPECT_TRUE(holds(plan_refusal("0F0,0B0\n1F0,1B0,1W0\n"), "rank 1: 1W0 repeats a part of 1B0"));
  EXPECT_TRUE(holds(plan_refusal("0F0,0B0\n1F0,1I0,1B0,1W0\n"),
                    "rank 1: 1B0 repeats a backward that was done in two halves"));
  EXPECT_TRUE(holds(plan_refusal("0F0,0B0\n1F0,1B0,2F0\n"),
                    "rank 1: 2F0 has a stage that does not exist; number of stages: 2"));
  EXPECT_TRUE(holds(plan_refusal("0F0,0B0\n1F0,1B0,1F1\n"),
                    "rank 1: 1F1 has a microbatch that does not exist; number of microbatches: 1"));
  EXPECT_TRUE(
      holds(plan_refusal("0F0,0B0,1B0\n1F0\n"), "stage 1 is on rank 0 and on rank 1 (1F0)"));
  EXPECT_TRUE(holds(plan_refusal("0F0,1F0,2F0,2B0,1B0,0B0\n3F0,3B0\n", {2, 4, 1}),
                    "rank 0 holds 3 stages, but each of 2 ranks must hold 2"));
}

TEST(PipelinePlan, ShowsTheFirstTenProblems) {
  const std::string message = plan_refusal("0F0\n1F0\n", {2, 2, 50});
  EXPECT_TRUE(holds(message, "\n  0F5 is missing\n  and more"));
  EXPECT_FALSE(holds(message, "0F6"));
}

TEST(PipelinePlan, SaysWhichRankWaitsForWhat) {
  // each rank needs the other's second half first
  EXPECT_EQ(plan_refusal("0F0,2F0,2B0,0B0\n3F0,1F0,1B0,3B0\n", {2, 4, 1}),
            "schedule 'mine' gives a table that cannot run 4 stages on 2 ranks with 1 "
            "microbatches:\n"
            "  rank 0 waits for ever at 2F0 for 1F0 of rank 1\n"
            "  rank 1 waits for ever at 3F0 for 2F0 of rank 0");
}

TEST(PipelinePlan, APairStartsWhenBothCan) {
  // the backward of the pair needs the forward of the same pair
  EXPECT_TRUE(holds(plan_refusal("0F0,0B0\n(1F0;1B0)OVERLAP_F_B\n"),
                    "rank 1 waits for ever at 1F0 for 1F0 of rank 1"));
  PipelineTable table = {{{PipelineAction::Kind::forward, 0, 0, true}}};
  const Error error = error_of([&] { make_plan(WrittenSchedule(table), "mine", {1, 1, 1}); });
  EXPECT_TRUE(holds(error.message(), "rank 0: 0F0 overlaps nothing, but only a forward can"));
}

TEST(PipelinePlan, RefusesCommunicationFromASchedule) {
  using Kind = PipelineAction::Kind;
  const PipelineTable table = {{{Kind::forward, 0, 0}, {Kind::send_output, 0, 0}}};
  const Error error = error_of([&] { make_plan(WrittenSchedule(table), "mine", {1, 1, 1}); });
  EXPECT_TRUE(holds(error.message(), "rank 0: 0SEND_F0 is communication"));
}

TEST(PipelinePlan, TakesAShapeOfOneRankAndOneMicrobatch) {
  for (const char* name : {"GPipe", "1F1B"})
    EXPECT_EQ(to_csv(make_plan(*schedule_named(name), name, {1, 1, 1}).actions), "0F0,0B0\n");
}

}  // namespace
}  // namespace titan::core
