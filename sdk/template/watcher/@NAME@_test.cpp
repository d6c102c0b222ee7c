// Tests of the watcher @FULL_NAME@ on a small network.
#include <gtest/gtest.h>

#include <titan/testing/network.h>

namespace {

using titan::testing::Network;
using titan::testing::Watched;

TEST(@CLASS@, LogsAPositiveNumberForEachModule) {
  Network network;
  const Watched watched = network.watch("@FULL_NAME@", {}, {1});
  ASSERT_EQ(watched.at(1).size(), 2u);
  EXPECT_GT(watched.at(1).at("rms/layers.0.feed_forward"), 0);
}

TEST(@CLASS@, EachStepStartsAnew) {
  Network whole, resumed;
  const Watched all = whole.watch("@FULL_NAME@", {}, {1, 2});
  EXPECT_EQ(resumed.watch("@FULL_NAME@", {}, {2}).at(2), all.at(2));  // a run that resumes after step 1
}

TEST(@CLASS@, LogsEveryNthStep) {
  Network network;
  const Watched watched = network.watch("@FULL_NAME@", {{"every", 2}}, {1, 2, 3, 4});
  EXPECT_EQ(watched.size(), 3u);
  EXPECT_FALSE(watched.contains(3));
}

TEST(@CLASS@, PatternsThatMatchNothingAreRefused) {
  Network network;
  EXPECT_THROW(network.watch("@FULL_NAME@", {{"modules", titan::Value::list({"no.such.module"})}}, {1}), titan::Error);
}

}  // namespace
