// Tests of the compile backend @FULL_NAME@ on a small network.
#include <gtest/gtest.h>

#include <titan/testing/network.h>

namespace {

using titan::testing::Gradients;
using titan::testing::Network;
using titan::testing::same_bits;

TEST(@CLASS@, GradientsEqualThoseOfTheLayers) {
  Network plain, compiled;
  compiled.apply("@FULL_NAME@");
  const Gradients expected = plain.run(), reached = compiled.run();
  EXPECT_NEAR(reached.loss / expected.loss, 1, 1e-5);
  ASSERT_EQ(reached.of.size(), expected.of.size());
  for (const auto& [name, gradient] : expected.of) EXPECT_LT(titan::testing::relative_difference(reached.of.at(name), gradient), 1e-4) << name;
}

TEST(@CLASS@, ComputesTheFeedForwardsOnly) {
  Network network;
  network.apply("@FULL_NAME@");
  const std::map<std::string, std::string> owners = network.kernel_owners();
  EXPECT_TRUE(owners.contains("layers.0.feed_forward"));
  EXPECT_TRUE(owners.contains("layers.1.feed_forward"));
  for (const auto& [path, owner] : owners) EXPECT_NE(path.find(".feed_forward"), std::string::npos) << path;
}

TEST(@CLASS@, WithoutTheComponentModelNothingChanges) {
  Network network;
  network.apply("@FULL_NAME@", {{"components", titan::Value::list({"loss"})}});
  EXPECT_TRUE(network.kernel_owners().empty());
}

TEST(@CLASS@, AResumedRunComputesTheSame) {
  Network before, after;
  before.apply("@FULL_NAME@");
  after.apply("@FULL_NAME@");
  before.run(1);
  const Gradients first = before.run(2), second = after.run(2);
  for (const auto& [name, gradient] : first.of) EXPECT_TRUE(same_bits(gradient, second.of.at(name))) << name;
}

}  // namespace
