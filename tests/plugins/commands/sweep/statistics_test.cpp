// Intervals of the mean; scipy.stats.t.interval computed the expected ones.
#include "plugins/commands/sweep/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace titan::commands {
namespace {

struct ExpectedInterval {
  int count;
  double mean, half_width;
};

class MeanIntervals : public ::testing::TestWithParam<ExpectedInterval> {};

TEST_P(MeanIntervals, AreScipys) {
  const ExpectedInterval& expected = GetParam();
  std::vector<double> values;
  for (int i = 1; i <= expected.count; ++i) values.push_back(7 * i % 101);
  const SeedStatistics found = statistics_of(values);
  EXPECT_NEAR(found.mean, expected.mean, 1e-12 * expected.mean);
  ASSERT_TRUE(found.half_width);
  EXPECT_NEAR(*found.half_width, expected.half_width, 1e-12 * expected.half_width);
}

INSTANTIATE_TEST_SUITE_P(Counts, MeanIntervals,
                         ::testing::Values(ExpectedInterval{2, 10.5, 44.47171657661142},
                                           ExpectedInterval{3, 14.0, 17.38896398225231},
                                           ExpectedInterval{5, 21.0, 13.742702130342899},
                                           ExpectedInterval{10, 38.5, 15.160954127677185},
                                           ExpectedInterval{30, 47.9, 11.27036999583082},
                                           ExpectedInterval{200, 50.03, 4.042563120626411}));

TEST(MeanIntervals, NeedTwoFiniteValues) {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  const SeedStatistics one = statistics_of({nan, 3, infinity});
  EXPECT_EQ(one.values, std::vector<double>{3});
  EXPECT_EQ(one.num_not_finite, 2);
  EXPECT_EQ(one.mean, 3);
  EXPECT_FALSE(one.half_width);
  EXPECT_TRUE(std::isnan(statistics_of({}).mean));
}

}  // namespace
}  // namespace titan::commands
