#include "core/train/held_numbers.h"

#include <limits>

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "tests/plugins/error_of.h"

namespace titan::core {
namespace {

class HeldNumbersTest : public ::testing::Test {
 protected:
  /// Steps up to `last`, each with this loss and a norm of 1; commits all.
  void run(int64_t first, int64_t last, double loss = 2) {
    for (int64_t number = first; number <= last; ++number) {
      Step step{.number = number};
      numbers_.begin(step);
      if (numbers_.is_holding()) {
        numbers_.set_loss(at::full({}, loss, at::kDouble));
        numbers_.set_norm(at::full({}, 1.0, at::kDouble));
      }
      numbers_.judge(step);
      numbers_.commit(step);
    }
  }

  HeldNumbers numbers_{[](int64_t step) { return step % 5 == 0; }};
};

TEST_F(HeldNumbersTest, HoldsAllStepsButThoseThatAreLookedAt) {
  for (const int64_t number : {1, 4, 5, 6, 10}) {
    Step step{.number = number};
    numbers_.begin(step);
    EXPECT_EQ(numbers_.is_holding(), number % 5 != 0) << number;
  }
}

TEST_F(HeldNumbersTest, ABadStepIsNamedWhenTheNextOneIsLookedAt) {
  run(1, 6);
  run(7, 7, std::numeric_limits<double>::infinity());
  run(8, 9);
  const Error error = testing::error_of([&] { run(10, 10); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_NE(error.message().find("step 7 had loss inf and gradient norm 1;"), std::string::npos)
      << error.message();
}

TEST_F(HeldNumbersTest, AnAttemptThatNeverWasIsForgotten) {
  Step step{.number = 1};
  numbers_.begin(step);
  numbers_.set_loss(at::full({}, std::numeric_limits<double>::quiet_NaN(), at::kDouble));
  numbers_.set_norm(at::full({}, 1.0, at::kDouble));
  numbers_.abort(step);
  run(1, 5);
  numbers_.require_finite();
}

// A run that logs nothing for long must not collect tensors without end.
TEST_F(HeldNumbersTest, LooksAtAStepBeforeTooManyAreHeld) {
  HeldNumbers never([](int64_t) { return false; });
  int64_t num_seen = 0;
  for (int64_t number = 1; number <= 3000; ++number) {
    Step step{.number = number};
    never.begin(step);
    num_seen += !never.is_holding();
    never.set_loss(at::full({}, 1.0, at::kDouble));
    never.set_norm(at::full({}, 1.0, at::kDouble));
    never.judge(step);
    never.commit(step);
  }
  EXPECT_EQ(num_seen, 2);
}

}  // namespace
}  // namespace titan::core
