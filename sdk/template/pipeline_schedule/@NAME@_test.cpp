// Tests of the pipeline schedule @FULL_NAME@, which is made as in a run.
#include <map>

#include <gtest/gtest.h>

#include <titan/pipeline_schedule.h>
#include <titan/testing/component.h>

namespace {

using titan::testing::make;

constexpr titan::PipelineShape kShape{.num_ranks = 3, .num_stages = 3, .num_microbatches = 4};

TEST(@CLASS@, EachStageRunsEachMicrobatchForwardsThenBackwards) {
  const titan::PipelineTable table = make<titan::PipelineSchedule>("@FULL_NAME@")->plan(kShape);
  std::map<std::string, int> times;
  for (const auto& actions : table) {
    std::map<int, bool> is_forward_done;
    for (const titan::PipelineAction& action : actions) {
      ++times[titan::to_string(action)];
      EXPECT_EQ(is_forward_done[action.microbatch], action.kind == titan::PipelineAction::Kind::backward);
      is_forward_done[action.microbatch] = true;
    }
  }
  EXPECT_EQ(times.size(), 2u * 3 * 4);  // a forward and a backward of each stage and microbatch
  for (const auto& [action, count] : times) EXPECT_EQ(count, 1) << action;
}

TEST(@CLASS@, ANewScheduleGivesTheSameTable) {
  EXPECT_EQ(make<titan::PipelineSchedule>("@FULL_NAME@")->plan(kShape), make<titan::PipelineSchedule>("@FULL_NAME@")->plan(kShape));
}

TEST(@CLASS@, TwoStagesPerRankAreRefused) {
  const auto schedule = make<titan::PipelineSchedule>("@FULL_NAME@");
  EXPECT_FALSE(schedule->problem(kShape));
  EXPECT_TRUE(schedule->problem({.num_ranks = 2, .num_stages = 4, .num_microbatches = 4}));
}

}  // namespace
