// When a loss or a norm is too large, compared with limits by hand.
#include "plugins/watchers/outliers/rule.h"

#include <gtest/gtest.h>

#include <titan/value.h>

namespace titan::outliers {
namespace {

Series series_of(const Options& options, const std::vector<double>& values) {
  Series series(options);
  for (const double value : values) series.add(value);
  return series;
}

TEST(OutlierRule, LimitIsMeanPlusDeviationsOfASample) {
  const Options options{.window = 4, .minimum = 4, .sigmas = 2};
  const Series series = series_of(options, {100, 1, 2, 3, 4});  // 100 has left the window
  // mean 2.5, squares 2.25 + 0.25 + 0.25 + 2.25 = 5, divisor 3: sigma 1.2909944
  EXPECT_FALSE(series.judge(5.0819));
  const auto excess = series.judge(5.0820);
  ASSERT_TRUE(excess);
  EXPECT_EQ(excess->kind, Excess::Kind::sigmas);
  EXPECT_DOUBLE_EQ(excess->mean, 2.5);
  EXPECT_NEAR(excess->sigma, 1.2909944, 1e-7);
  EXPECT_EQ(excess->num_values, 4);
  EXPECT_FALSE(series.judge(-100)) << "small values are no outliers";
}

TEST(OutlierRule, NothingIsJudgedBeforeTheMinimum) {
  const Options options{.window = 8, .minimum = 3, .sigmas = 6};
  EXPECT_FALSE(series_of(options, {1, 2}).judge(1e9));
  EXPECT_TRUE(series_of(options, {1, 2, 1}).judge(1e9));
}

TEST(OutlierRule, GreatestOfTheFirstValues) {
  const Options options{.sigmas = 0, .times_largest = 10, .largest_of = 3};
  EXPECT_FALSE(series_of(options, {1, 2}).judge(1e9));
  const Series series = series_of(options, {1, -2, 1, 50});  // 50 is not one of the first
  EXPECT_FALSE(series.judge(19.9));
  ASSERT_TRUE(series.judge(20));
  EXPECT_EQ(series.judge(20)->kind, Excess::Kind::largest);
  EXPECT_EQ(series.judge(20)->limit, 20);
}

TEST(OutlierRule, StateKeepsEveryBit) {
  const Options options{.window = 3, .minimum = 2, .times_largest = 10, .largest_of = 2};
  const Series series = series_of(options, {0.1, 1.0 / 3, 1e-300, 2.5e10});
  Series restored(options);
  restored.restore(parse_json(to_json(series.state())));
  EXPECT_EQ(restored.state(), series.state());
  EXPECT_EQ(series.state().at("window"), Value::list({1.0 / 3, 1e-300, 2.5e10}));
  EXPECT_EQ(series.state().at("largest"), Value(1.0 / 3));

  Series shorter({.window = 2, .minimum = 2});
  shorter.restore(series.state());
  EXPECT_EQ(shorter.state().at("window"), Value::list({1e-300, 2.5e10}));
}

}  // namespace
}  // namespace titan::outliers
