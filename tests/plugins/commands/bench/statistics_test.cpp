// Confidence intervals; tests/referee/bench_statistics.py computed the expected ones with
// scipy.stats.quantile_test.
#include "plugins/commands/bench/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace titan::commands {
namespace {

/// 7 i mod 101 for i = 1, 2, ...: all different.
std::vector<double> drawn(int count) {
  std::vector<double> values;
  for (int i = 1; i <= count; ++i) values.push_back(7 * i % 101);
  return values;
}

struct Expected {
  int count;
  double confidence, median, low, high;
};

class MedianIntervals : public ::testing::TestWithParam<Expected> {};

TEST_P(MedianIntervals, AreScipys) {
  const Expected& expected = GetParam();
  const MedianInterval found = median_interval(drawn(expected.count), expected.confidence);
  EXPECT_EQ(found.median, expected.median);
  ASSERT_TRUE(found.low && found.high);
  EXPECT_EQ(*found.low, expected.low);
  EXPECT_EQ(*found.high, expected.high);
}

INSTANTIATE_TEST_SUITE_P(
    Counts, MedianIntervals,
    ::testing::Values(Expected{6, 0.95, 24.5, 7, 42}, Expected{7, 0.95, 28, 7, 49},
                      Expected{8, 0.95, 31.5, 7, 56}, Expected{8, 0.99, 31.5, 7, 56},
                      Expected{9, 0.95, 35, 14, 56}, Expected{9, 0.99, 35, 7, 63},
                      Expected{12, 0.95, 45.5, 21, 70}, Expected{12, 0.99, 45.5, 14, 77},
                      Expected{25, 0.95, 46, 28, 63}, Expected{25, 0.99, 46, 21, 70},
                      Expected{60, 0.95, 48, 33, 63}, Expected{60, 0.99, 48, 29, 67},
                      Expected{100, 0.95, 50.5, 40, 61}, Expected{100, 0.99, 50.5, 37, 64}));

TEST(MedianInterval, OfFiveValuesHasNoNinetyFivePercent) {
  EXPECT_FALSE(median_interval(drawn(5)).low);
  EXPECT_FALSE(median_interval(drawn(5)).high);
  EXPECT_TRUE(median_interval(drawn(6)).low);
}

TEST(MedianInterval, HoldsTheMedianOfOneValueWithoutBounds) {
  const MedianInterval found = median_interval({3});
  EXPECT_EQ(found.median, 3);
  EXPECT_FALSE(found.low);
  EXPECT_TRUE(std::isnan(median_interval({}).median));
}

TEST(Median, DoesNotDependOnTheOrder) {
  EXPECT_EQ(median({5, 1, 3}), 3);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
}

}  // namespace
}  // namespace titan::commands
