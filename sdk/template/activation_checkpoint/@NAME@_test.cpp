// Tests of the activation checkpointing @FULL_NAME@ on a small network.
#include <gtest/gtest.h>

#include <titan/testing/network.h>

namespace {

using titan::testing::Gradients;
using titan::testing::Network;
using titan::testing::same_bits;

/// Loss and gradients of a network with the plugin.
Gradients run(titan::testing::OptionValues options = {}) {
  Network network;
  network.apply("@FULL_NAME@", options);
  return network.run();
}

TEST(@CLASS@, TheForwardIsUnchangedAndGradientsAreRounded) {
  const Gradients plain = Network().run(), narrow = run({{"min_elements", 1}});
  EXPECT_EQ(narrow.loss, plain.loss);
  const std::string weight = "layers.0.feed_forward.w1.weight";
  EXPECT_FALSE(same_bits(narrow.of.at(weight), plain.of.at(weight)));
  EXPECT_LT(titan::testing::relative_difference(narrow.of.at(weight), plain.of.at(weight)), 0.02);
}

TEST(@CLASS@, SmallTensorsAreUnchanged) {
  const Gradients plain = Network().run(), kept = run({{"min_elements", 1 << 20}});
  for (const auto& [name, gradient] : plain.of) EXPECT_TRUE(same_bits(gradient, kept.of.at(name))) << name;
}

TEST(@CLASS@, AResumedRunComputesTheSame) {
  const Gradients before = run(), after = run();
  for (const auto& [name, gradient] : before.of) EXPECT_TRUE(same_bits(gradient, after.of.at(name))) << name;
}

}  // namespace
