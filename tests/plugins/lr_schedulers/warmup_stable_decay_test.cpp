// The schedule against factors that torchtitan v0.2.2 printed; tests/referee/lr_schedule_referee.py
// checks many more.
#include "plugins/lr_schedulers/warmup_stable_decay/warmup_stable_decay.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/plugins/error_of.h"

namespace titan::lr_schedulers {
namespace {

using titan::testing::error_of;
using titan::testing::holds;

std::vector<double> factors(const WarmupStableDecayOptions& options, int64_t steps) {
  const WarmupStableDecay schedule(options, {.training_steps = steps});
  std::vector<double> result;
  for (int64_t step = 1; step <= steps; ++step) result.push_back(schedule.factor(step));
  return result;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 5e-7) << "step " << i + 1;
}

/// The text that constructing the schedule wrote to standard error.
std::string warnings(const WarmupStableDecayOptions& options, int64_t steps) {
  ::testing::internal::CaptureStderr();
  factors(options, steps);
  return ::testing::internal::GetCapturedStderr();
}

TEST(WarmupStableDecay, DecaysRightAfterWarmupByDefault) {
  const std::vector<double> kGolden = {0.5, 1, 1, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125};
  expect_near(factors({.warmup_steps = 2}, 10), kGolden);
  expect_near(factors({.warmup_steps = 2, .decay_ratio = 0.8}, 10), kGolden);
}

TEST(WarmupStableDecay, FollowsTheCosine) {
  expect_near(factors({.warmup_steps = 2,
                       .decay_ratio = 0.5,
                       .decay_type = DecayType::cosine,
                       .min_lr_factor = 0.1},
                      10),
              {0.5, 1, 1, 1, 1, 1, 0.914058, 0.689058, 0.410942, 0.185942});
}

TEST(WarmupStableDecay, RoundsHalvesToEven) {
  expect_near(factors({.warmup_steps = 3, .decay_ratio = 0.45, .decay_type = DecayType::sqrt}, 10),
              {0.333333, 0.666667, 1, 1, 1, 1, 1, 0.5, 0.292893, 0.133975});
}

TEST(WarmupStableDecay, CutsAWarmupThatIsTooLongAndSaysSo) {
  expect_near(factors({.warmup_steps = 200}, 4), {0.25, 0.5, 0.75, 1});
  EXPECT_TRUE(holds(warnings({.warmup_steps = 200}, 4),
                    "warmup takes 200 steps, but only 4 of the schedule's 4 are left for it; "
                    "it is shortened to 4"));
  EXPECT_TRUE(holds(warnings({.warmup_steps = 2, .decay_ratio = 1.0}, 4),
                    "decay takes 4 steps, but only 2 of the schedule's 4 are left for it"));
  EXPECT_EQ(warnings({.warmup_steps = 2, .decay_ratio = 0.5}, 4), "");
}

TEST(WarmupStableDecay, StaysAtTheFloorBehindTheSchedule) {
  const WarmupStableDecay schedule({.warmup_steps = 2, .total_steps = 10, .min_lr_factor = 0.25},
                                   {.training_steps = 1000});
  EXPECT_GT(schedule.factor(10), 0.25);
  EXPECT_EQ(schedule.factor(11), 0.25);
  EXPECT_EQ(schedule.factor(1000), 0.25);
}

TEST(WarmupStableDecay, WithoutDecayStaysAtOne) {
  const WarmupStableDecay schedule({.warmup_steps = 0, .decay_ratio = 0.0}, {.training_steps = 3});
  for (int64_t step = 1; step < 10; ++step) EXPECT_EQ(schedule.factor(step), 1);
}

TEST(WarmupStableDecay, NeedsAStep) {
  const Error error =
      error_of([] { WarmupStableDecay(WarmupStableDecayOptions(), {.training_steps = 0}); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_TRUE(holds(error.what(), "at least 1 step, got 0"));
}

}  // namespace
}  // namespace titan::lr_schedulers
