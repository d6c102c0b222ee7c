#include "core/train/loss/loss_scaler.h"

#include <limits>

#include <gtest/gtest.h>

#include <titan/error.h>

namespace titan::core {
namespace {

constexpr double kFinite = 1.5, kOverflow = std::numeric_limits<double>::infinity();
constexpr LossScalingSection kSection{.initial = 1024, .growth_interval = 3, .minimum = 256};

/// One step whose gradient norm is `norm`. Returns whether its gradients were used.
bool takes(LossScaler& scaler, double norm) {
  Step step{.number = 1};
  scaler.begin(step);
  EXPECT_EQ(step.batches.gradient_scale, scaler.scale());
  step.norm = norm;
  const bool is_taken = scaler.judge(step).verdict == Verdict::commit;
  is_taken ? scaler.commit(step) : scaler.skip(step);
  return is_taken;
}

TEST(LossScaler, GrowsAfterSoManyStepsWithoutAnOverflowCountedAnewAfterEachOne) {
  TrainState state;
  LossScaler scaler(kSection, /*is_active=*/true, /*is_first_rank=*/false, state);
  EXPECT_EQ(scaler.scale(), 1024);
  EXPECT_TRUE(takes(scaler, kFinite) && takes(scaler, kFinite));
  EXPECT_FALSE(takes(scaler, kOverflow));
  EXPECT_EQ(scaler.scale(), 512);
  EXPECT_TRUE(takes(scaler, kFinite) && takes(scaler, kFinite));
  EXPECT_EQ(scaler.scale(), 512) << "two steps since the overflow, not four";
  EXPECT_TRUE(takes(scaler, kFinite));
  EXPECT_EQ(scaler.scale(), 1024);
  EXPECT_TRUE(takes(scaler, kFinite) && takes(scaler, kFinite));
  EXPECT_EQ(scaler.scale(), 1024) << "counted again after growing, too";
}

TEST(LossScaler, EndsTheRunWhereTheScaleCannotShrinkAnyMore) {
  TrainState state;
  LossScaler scaler(kSection, true, false, state);
  EXPECT_FALSE(takes(scaler, kOverflow) || takes(scaler, kOverflow));
  EXPECT_EQ(scaler.scale(), 256);
  EXPECT_THROW(takes(scaler, kOverflow), Error);
}

TEST(LossScaler, GoesOnWithTheScaleOfTheCheckpoint) {
  TrainState state{.loss_scale = 8, .loss_scale_steps = 2};
  LossScaler scaler(kSection, true, false, state);
  EXPECT_EQ(scaler.scale(), 8);
  EXPECT_TRUE(takes(scaler, kFinite));
  EXPECT_EQ(scaler.scale(), 16);
}

TEST(LossScaler, NeverGrowsBeyondFloat32) {
  TrainState state{.loss_scale = 0x1p127};
  LossScaler scaler({.growth_interval = 1}, true, false, state);
  EXPECT_TRUE(takes(scaler, kFinite));
  EXPECT_EQ(scaler.scale(), 0x1p127);
}

TEST(LossScaler, SaysOnTheFirstRankWhatBecomesOfTheScaleAndChangesNothingBefore) {
  TrainState state;
  LossScaler first(kSection, true, /*is_first_rank=*/true, state);
  const Step step{.number = 7, .norm = kOverflow};
  EXPECT_EQ(first.judge(step).reason,
            "gradients overflowed float16 in step 7: the weights are unchanged; the loss "
            "scale is now 512.000000");
  EXPECT_EQ(LossScaler(kSection, true, false, state).judge(step).reason, "");
  first.abort(step);
  EXPECT_EQ(state.loss_scale, 1024);
}

TEST(LossScaler, CountsNoStepThatSomebodyElseSkips) {
  TrainState state{.loss_scale = 1024, .loss_scale_steps = 2};
  LossScaler scaler(kSection, true, false, state);
  scaler.skip({.number = 1, .norm = kFinite});
  EXPECT_EQ(state.loss_scale, 1024);
  EXPECT_EQ(state.loss_scale_steps, 2);
}

TEST(LossScaler, TakesEveryStepAsItIsWhereNothingIsFloat16) {
  TrainState state;
  LossScaler scaler(kSection, /*is_active=*/false, false, state);
  EXPECT_TRUE(takes(scaler, kOverflow));
  EXPECT_EQ(scaler.scale(), 1);
  EXPECT_EQ(state.loss_scale, 0);
}

}  // namespace
}  // namespace titan::core
