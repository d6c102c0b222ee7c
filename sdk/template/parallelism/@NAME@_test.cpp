// Tests of the parallelism @FULL_NAME@ on one rank. The recipe runs it on two.
#include <gtest/gtest.h>

#include <titan/testing/network.h>

namespace {

using titan::testing::Gradients;
using titan::testing::Network;
using titan::testing::same_bits;

TEST(@CLASS@, TheNetworkComputesTheSame) {
  Network plain, parallel;
  parallel.apply("@FULL_NAME@");
  const Gradients expected = plain.run(), reached = parallel.run();
  EXPECT_EQ(reached.loss, expected.loss);
  ASSERT_EQ(reached.of.size(), expected.of.size());
  for (const auto& [name, gradient] : expected.of) EXPECT_TRUE(same_bits(gradient, reached.of.at(name))) << name;
}

TEST(@CLASS@, LogsEachLayerOnce) {
  Network network;
  network.apply("@FULL_NAME@");
  testing::internal::CaptureStderr();
  network.run();
  network.run();
  const std::string log = testing::internal::GetCapturedStderr();
  const std::string line = "layers.0: 1024 elements over 1 ranks of loss";  // 2 rows x 16 tokens x width 32
  const size_t at = log.find(line);
  ASSERT_NE(at, std::string::npos) << log;
  EXPECT_EQ(log.find(line, at + 1), std::string::npos) << log;
}

TEST(@CLASS@, AnUnknownAxisIsRefused) {
  Network network;
  EXPECT_THROW(network.apply("@FULL_NAME@", {{"axis", "sideways"}}), titan::Error);
}

}  // namespace
