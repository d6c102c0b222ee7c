// Times and activations of schedules, where a paper gives a formula. The referee compares many more
// shapes with a longest path in exact fractions.

#include <gtest/gtest.h>

#include <titan/pipelines/analysis.h>

#include "core/pipeline/plan.h"
#include "tests/core/pipeline/pipeline_fixture.h"
#include "tests/plugins/error_of.h"

namespace titan::core {
namespace {

PipelineAnalysis analysis_of(const char* name, PipelineShape shape, ActionCosts costs = {}) {
  return analyze(make_plan(*schedule_named(name), name, shape), costs);
}

TEST(PipelineAnalysis, OneStagePerRankIdlesForOneMicrobatchPerHop) {
  const ActionCosts costs{.forward = 2, .input_grad = 3, .weight_grad = 1.5};
  for (const char* name : {"GPipe", "1F1B"}) {
    for (const int ranks : {2, 4, 8}) {
      for (const int microbatches : {8, 16}) {
        const auto analysis = analysis_of(name, {ranks, ranks, microbatches}, costs);
        EXPECT_DOUBLE_EQ(analysis.makespan, (microbatches + ranks - 1) * 6.5) << name;
        for (const RankUse& use : analysis.ranks)
          EXPECT_NEAR(use.bubble, (ranks - 1.0) / (microbatches + ranks - 1.0), 1e-12) << name;
      }
    }
  }
}

TEST(PipelineAnalysis, ActivationsOfGPipeGrowWithMicrobatchesAndOf1F1BWithRanks) {
  const auto gpipe = analysis_of("GPipe", {4, 4, 12});
  const auto one_by_one = analysis_of("1F1B", {4, 4, 12});
  for (size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(gpipe.ranks[rank].peak_activations, 12);
    EXPECT_EQ(one_by_one.ranks[rank].peak_activations, 4 - static_cast<int>(rank));
  }
}

TEST(PipelineAnalysis, StagesPerRankDivideTheBubble) {
  for (const int per_rank : {2, 3, 4}) {
    for (const char* name : {"Interleaved1F1B", "LoopedBFS"}) {
      const auto analysis = analysis_of(name, {4, 4 * per_rank, 8});
      EXPECT_DOUBLE_EQ(analysis.makespan, 3 * (8 * per_rank + 3)) << name << per_rank;
      EXPECT_NEAR(analysis.mean_bubble(), 3.0 / (8 * per_rank + 3), 1e-12) << name;
    }
  }
}

TEST(PipelineAnalysis, ZbvDoesNotIdleBetweenFirstAndLastAction) {
  for (const int ranks : {2, 4, 8})
    for (const int microbatches : {2 * ranks - 1, 2 * ranks, 4 * ranks})
      for (const RankUse& use :
           analysis_of("ZBVZeroBubble", {ranks, 2 * ranks, microbatches}).ranks) {
        EXPECT_DOUBLE_EQ(use.inner_idle, 0);
        EXPECT_LE(use.peak_activations, 2 * ranks);
      }
}

TEST(PipelineAnalysis, ActivationsUntilTheInputGradientAreNoMore) {
  const auto analysis = analysis_of("InterleavedZeroBubble", {4, 8, 8});
  bool is_less = false;
  for (const RankUse& use : analysis.ranks) {
    EXPECT_LE(use.peak_until_input_grad, use.peak_activations);
    is_less = is_less || use.peak_until_input_grad < use.peak_activations;
  }
  EXPECT_TRUE(is_less);
}

TEST(PipelineAnalysis, APairStartsWhenBothCanAndTakesAsLongAsItsHalves) {
  const WrittenSchedule schedule("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1B0,1F1,1B1\n");
  const auto analysis = analyze(make_plan(schedule, "mine", {2, 2, 2}), {});
  const auto& actions = analysis.timeline[0];
  EXPECT_EQ(actions[1].start, 4);  // 0F1 could start at 1, but 1B0 ends at 4
  EXPECT_EQ(actions[2].start, 5);
  EXPECT_EQ(actions[2].end, 7);
  EXPECT_EQ(actions[3].start, 8);
  EXPECT_EQ(analysis.makespan, 10);
}

TEST(PipelineAnalysis, RefusesCostsThatAreNotPositive) {
  const auto error = titan::testing::error_of([] { analysis_of("GPipe", {2, 2, 2}, {1, 0, 1}); });
  EXPECT_EQ(error.message(), "the costs of F, I and W must be > 0, got 1, 0, 1");
}

}  // namespace
}  // namespace titan::core
