#include <titan/program/quantity_text.h>

#include <cmath>

#include <gtest/gtest.h>

namespace titan {
namespace {

TEST(QuantityText, PutsCommasBetweenThousands) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(1234567), "1,234,567");
  EXPECT_EQ(with_commas(-123), "-123");
  EXPECT_EQ(with_commas(-1234), "-1,234");
}

TEST(QuantityText, KeepsThreeDigitsOfCountsAndBytes) {
  EXPECT_EQ(short_count(999), "999");
  EXPECT_EQ(short_count(1000), "1.00 k");
  EXPECT_EQ(short_count(999'950), "1.00 M");
  EXPECT_EQ(short_count(12'345'678), "12.3 M");
  EXPECT_EQ(short_count(1'500'000'000'000), "1.50 T");
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(1000), "1.00 kB");
  EXPECT_EQ(bytes_text(999'999), "1.00 MB");
  EXPECT_EQ(bytes_text(15.96e9), "16.0 GB");
  EXPECT_EQ(bytes_text(405e9), "405 GB");
}

TEST(QuantityText, WritesTimesAsLongAsTheyHaveToBe) {
  EXPECT_EQ(duration_text(0.2), "0 s");
  EXPECT_EQ(duration_text(5.4), "5 s");
  EXPECT_EQ(duration_text(59.6), "1:00");
  EXPECT_EQ(duration_text(187), "3:07");
  EXPECT_EQ(duration_text(3599.6), "1:00:00");
  EXPECT_EQ(duration_text(7387), "2:03:07");
  EXPECT_EQ(duration_text(90061), "1 d 1:01:01");
  EXPECT_EQ(duration_text(-1), "0 s");
}

TEST(QuantityText, TakesTheSignOffANaNAlone) {
  EXPECT_FALSE(std::signbit(without_nan_sign(-std::nan(""))));
  EXPECT_TRUE(std::isnan(without_nan_sign(-std::nan(""))));
  EXPECT_EQ(without_nan_sign(-2.5), -2.5);
}

}  // namespace
}  // namespace titan
