// Tests of the learning-rate schedule @FULL_NAME@, which is made with its options as in a run.
#include <gtest/gtest.h>

#include <titan/lr_scheduler.h>
#include <titan/testing/component.h>

namespace {

using titan::testing::make;

TEST(@CLASS@, FallsFromOneToTheFloor) {
  const auto schedule = make<titan::LrScheduler>("@FULL_NAME@", {{"floor", 0.2}}, {.training_steps = 11});
  EXPECT_DOUBLE_EQ(schedule->factor(1), 1);
  EXPECT_DOUBLE_EQ(schedule->factor(6), 0.6);
  EXPECT_DOUBLE_EQ(schedule->factor(11), 0.2);
  EXPECT_DOUBLE_EQ(schedule->factor(12), 0.2);
}

TEST(@CLASS@, AResumedRunContinuesTheSchedule) {
  const auto whole = make<titan::LrScheduler>("@FULL_NAME@", {}, {.training_steps = 10});
  for (int64_t step = 1; step <= 5; ++step) whole->factor(step);
  const auto resumed = make<titan::LrScheduler>("@FULL_NAME@", {}, {.training_steps = 10});
  for (int64_t step = 6; step <= 10; ++step) EXPECT_EQ(resumed->factor(step), whole->factor(step)) << step;
}

TEST(@CLASS@, ARunOfOneStepHasTheWholeRate) {
  EXPECT_EQ(make<titan::LrScheduler>("@FULL_NAME@", {}, {.training_steps = 1})->factor(1), 1);
}

TEST(@CLASS@, AFloorAboveOneIsRefused) {
  EXPECT_THROW(make<titan::LrScheduler>("@FULL_NAME@", {{"floor", 1.5}}), titan::Error);
}

}  // namespace
