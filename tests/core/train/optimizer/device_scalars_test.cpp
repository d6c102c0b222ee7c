#include "core/train/optimizer/device_scalars.h"

#include <limits>

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "tests/plugins/error_of.h"

namespace titan::core::device_scalars_test {
namespace {

class DeviceScalarsTest : public ::testing::Test {
 protected:
  /// From begin() to reduced(), like an executor that keeps its losses on the device where allowed,
  /// and like gradient clipping.
  static void compute(DeviceScalars& numbers, Step& step, double loss) {
    numbers.begin(step);
    EXPECT_EQ(step.batches.keep_loss_on_device, numbers.is_holding());
    if (step.batches.keep_loss_on_device) {
      step.loss = {.normalized_sum = std::numeric_limits<double>::quiet_NaN(),
                   .device_loss = at::full({}, loss, at::kDouble)};
      numbers.set_norm(at::full({}, 1.0, at::kDouble));
    } else {
      step.loss = {.normalized_sum = loss};
    }
    numbers.reduced(step);
  }

  /// Runs and commits steps up to `last`, each with this loss and a norm of 1.
  void run(int64_t first, int64_t last, double loss = 2) {
    for (int64_t number = first; number <= last; ++number) {
      Step step{.number = number};
      compute(numbers_, step, loss);
      numbers_.judge(step);
      numbers_.commit(step);
    }
  }

  DeviceScalars numbers_{[](int64_t step) { return step % 5 == 0; }};
};

TEST_F(DeviceScalarsTest, HoldsAllStepsButThoseThatAreLookedAt) {
  for (const int64_t number : {1, 4, 5, 6, 10}) {
    Step step{.number = number};
    numbers_.begin(step);
    EXPECT_EQ(numbers_.is_holding(), number % 5 != 0) << number;
  }
}

TEST_F(DeviceScalarsTest, ABadStepIsNamedWhenTheNextOneIsLookedAt) {
  run(1, 6);
  run(7, 7, std::numeric_limits<double>::infinity());
  run(8, 9);
  const Error error = testing::error_of([&] { run(10, 10); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_NE(error.message().find("step 7 had loss inf and gradient norm 1;"), std::string::npos)
      << error.message();
}

TEST_F(DeviceScalarsTest, AnAttemptThatNeverWasIsForgotten) {
  Step step{.number = 1};
  compute(numbers_, step, std::numeric_limits<double>::quiet_NaN());
  numbers_.abort(step);
  run(1, 5);
  numbers_.require_finite();
}

TEST_F(DeviceScalarsTest, ANumberOfAnExecutorThatLeavesNothingIsJudgedAlike) {
  Step step{.number = 1};
  numbers_.begin(step);
  step.loss = {.normalized_sum = std::numeric_limits<double>::infinity()};
  numbers_.set_norm(at::full({}, 1.0, at::kDouble));
  numbers_.reduced(step);
  numbers_.judge(step);
  numbers_.commit(step);
  EXPECT_NE(
      testing::error_of([&] { numbers_.require_finite(); }).message().find("step 1 had loss inf"),
      std::string::npos);
}

// A run that seldom logs must not collect tensors without limit.
TEST_F(DeviceScalarsTest, LooksAtAStepBeforeTooManyAreHeld) {
  DeviceScalars never([](int64_t) { return false; });
  int64_t num_seen = 0;
  for (int64_t number = 1; number <= 3000; ++number) {
    Step step{.number = number};
    compute(never, step, 1);
    num_seen += !never.is_holding();
    never.judge(step);
    never.commit(step);
  }
  EXPECT_EQ(num_seen, 2);
}

}  // namespace
}  // namespace titan::core::device_scalars_test
