// Tests of the model @FULL_NAME@ at a small size.
#include <cmath>

#include <gtest/gtest.h>

#include <titan/testing/network.h>

namespace {

using titan::testing::Gradients;
using titan::testing::Network;
using titan::testing::same_bits;

struct Small : Network {
  Small() : Network("@FULL_NAME@", {{"dim", 16}, {"hidden_dim", 24}, {"n_layers", 2}, {"vocab_size", 32}}) {}
};

TEST(@CLASS@, EveryParameterGetsAFiniteGradient) {
  Small network;
  const Gradients gradients = network.run();
  EXPECT_GT(gradients.loss, 0);
  for (const std::string& name : network.parameters()) {
    ASSERT_TRUE(gradients.of.contains(name)) << name;
    EXPECT_TRUE(std::isfinite(gradients.of.at(name).norm().item<double>())) << name;
  }
}

TEST(@CLASS@, ANewModelHasTheSameNamesAndValues) {
  Small before, after;
  EXPECT_EQ(before.parameters(), after.parameters());
  const Gradients first = before.run(), second = after.run();
  for (const auto& [name, gradient] : first.of) EXPECT_TRUE(same_bits(gradient, second.of.at(name))) << name;
}

TEST(@CLASS@, AWidthOfZeroIsRefused) {
  EXPECT_THROW(Network("@FULL_NAME@", {{"dim", 0}}), titan::Error);
}

}  // namespace
