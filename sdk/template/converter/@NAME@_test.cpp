// Tests of the converter @FULL_NAME@ on a small network.
#include <gtest/gtest.h>

#include <titan/testing/network.h>

namespace {

using titan::Value;
using titan::testing::Gradients;
using titan::testing::Network;

TEST(@CLASS@, ComputesLinearLayersExceptThoseToSkip) {
  Network network;
  network.apply("@FULL_NAME@", {{"skip", Value::list({"output", "attention"})}});
  EXPECT_EQ(network.kernel_owners().size(), 2u * 3);  // the feed-forwards of two blocks
  for (const auto& [path, owner] : network.kernel_owners()) EXPECT_EQ(path.find("attention"), std::string::npos) << path;
}

TEST(@CLASS@, ChangesTheLossLittleAndEveryGradientIsThere) {
  Network plain, converted;
  converted.apply("@FULL_NAME@");
  const Gradients before = plain.run(), after = converted.run();
  EXPECT_NE(after.loss, before.loss);
  EXPECT_NEAR(after.loss / before.loss, 1, 0.01);
  EXPECT_EQ(after.of.size(), before.of.size());
}

TEST(@CLASS@, AResumedRunComputesTheSame) {
  Network before, after;
  before.apply("@FULL_NAME@");
  after.apply("@FULL_NAME@");
  before.run(1);
  EXPECT_EQ(before.run(2).loss, after.run(2).loss);
}

}  // namespace
