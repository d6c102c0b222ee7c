#include "core/train/loss_scaler.h"

#include <limits>

#include <gtest/gtest.h>

#include <titan/error.h>

namespace titan::core {
namespace {

constexpr GradientNorm kFinite{1.5, true};
constexpr GradientNorm kOverflow{std::numeric_limits<double>::infinity(), true};
constexpr LossScalingSection kSection{.initial = 1024, .growth_interval = 3, .minimum = 256};

TEST(LossScaler, GrowsAfterSoManyStepsWithoutAnOverflowCountedAnewAfterEachOne) {
  TrainState state;
  LossScaler scaler(kSection, /*is_active=*/true, /*is_first_rank=*/false, state);
  EXPECT_EQ(scaler.scale(), 1024);
  EXPECT_TRUE(scaler.takes(kFinite) && scaler.takes(kFinite));
  EXPECT_FALSE(scaler.takes(kOverflow));
  EXPECT_EQ(scaler.scale(), 512);
  EXPECT_TRUE(scaler.takes(kFinite) && scaler.takes(kFinite));
  EXPECT_EQ(scaler.scale(), 512) << "two steps since the overflow, not four";
  EXPECT_TRUE(scaler.takes(kFinite));
  EXPECT_EQ(scaler.scale(), 1024);
  EXPECT_TRUE(scaler.takes(kFinite) && scaler.takes(kFinite));
  EXPECT_EQ(scaler.scale(), 1024) << "counted anew after growing, too";
}

TEST(LossScaler, EndsTheRunWhereTheScaleCannotShrinkAnyMore) {
  TrainState state;
  LossScaler scaler(kSection, true, false, state);
  EXPECT_FALSE(scaler.takes(kOverflow) || scaler.takes(kOverflow));
  EXPECT_EQ(scaler.scale(), 256);
  EXPECT_THROW(scaler.takes(kOverflow), Error);
}

TEST(LossScaler, GoesOnWithTheScaleOfTheCheckpoint) {
  TrainState state{.loss_scale = 8, .loss_scale_steps = 2};
  LossScaler scaler(kSection, true, false, state);
  EXPECT_EQ(scaler.scale(), 8);
  EXPECT_TRUE(scaler.takes(kFinite));
  EXPECT_EQ(scaler.scale(), 16);
}

TEST(LossScaler, NeverGrowsBeyondFloat32) {
  TrainState state{.loss_scale = 0x1p127};
  LossScaler scaler({.growth_interval = 1}, true, false, state);
  EXPECT_TRUE(scaler.takes(kFinite));
  EXPECT_EQ(scaler.scale(), 0x1p127);
}

TEST(LossScaler, TakesEveryStepAsItIsWhereNothingIsFloat16) {
  TrainState state;
  LossScaler scaler(kSection, /*is_active=*/false, false, state);
  EXPECT_TRUE(scaler.takes(kOverflow));
  EXPECT_EQ(scaler.scale(), 1);
  EXPECT_EQ(state.loss_scale, 0);
}

}  // namespace
}  // namespace titan::core
