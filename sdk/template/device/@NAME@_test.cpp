// Tests of the device @FULL_NAME@, which is made with its options as in a run.
#include <gtest/gtest.h>

#include <titan/device.h>
#include <titan/testing/component.h>

namespace {

using titan::testing::make;

TEST(@CLASS@, ReportsItsMemory) {
  const titan::MemoryStats memory = make<titan::Device>("@FULL_NAME@")->memory();
  EXPECT_GT(memory.peak, 0);
  EXPECT_LE(memory.peak, memory.total);
}

TEST(@CLASS@, ThePeakIsUnknownUnlessAnOptionGivesIt) {
  EXPECT_FALSE(make<titan::Device>("@FULL_NAME@")->peak_flops(c10::ScalarType::Float));
  const auto device = make<titan::Device>("@FULL_NAME@", {{"peak_flops", 1e12}});
  EXPECT_EQ(device->peak_flops(c10::ScalarType::Float), 1e12);
  EXPECT_FALSE(device->peak_flops(c10::ScalarType::BFloat16));
}

TEST(@CLASS@, TensorsAreOnTheCpu) {
  EXPECT_EQ(make<titan::Device>("@FULL_NAME@")->device(), c10::Device(c10::kCPU));
}

TEST(@CLASS@, APeakOfZeroIsRefused) {
  EXPECT_THROW(make<titan::Device>("@FULL_NAME@", {{"peak_flops", 0.0}}), titan::Error);
}

}  // namespace
