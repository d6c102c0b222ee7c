#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <titan/device.h>

#include "tests/plugins/registry.h"

namespace titan {
namespace {

std::unique_ptr<Device> make_cpu(bool counts) {
  return testing::create<Device>("cpu", Value::map({{"count_tensors", counts}}), DeviceContext{});
}

at::Tensor bytes(int64_t count) {
  return at::empty({count}, at::kByte);
}

TEST(CpuMemory, IsThatOfTheProcessUnlessTensorsAreCounted) {
  EXPECT_GT(make_cpu(false)->memory().peak, int64_t{10} << 20);  // LibTorch alone takes more
}

TEST(CpuMemory, CountsWhatTensorsAskForToTheByte) {
  const auto device = make_cpu(true);
  device->reset_peak_memory();
  const int64_t before = device->memory().peak;
  {
    const at::Tensor kept = bytes(1001);
    bytes(70000);
    const at::Tensor view = kept.narrow(0, 0, 5);
  }
  EXPECT_EQ(device->memory().peak - before, 71001);
  device->reset_peak_memory();
  EXPECT_EQ(device->memory().peak, before);
  EXPECT_GT(device->memory().total, before);
}

TEST(CpuMemory, CountedTensorsHoldTheirValuesThroughGrowthAndEmptiness) {
  const auto device = make_cpu(true);
  at::Tensor grown = at::full({3}, 7.0);
  device->reset_peak_memory();
  const int64_t before = device->memory().peak;
  grown.resize_({1000});
  EXPECT_EQ(grown[2].item<float>(), 7.0f);
  EXPECT_EQ(device->memory().peak - before, 4000);  // the old 12 bytes exist until they are moved
  EXPECT_EQ(reinterpret_cast<uintptr_t>(grown.data_ptr()) % 64, 0u);
  EXPECT_EQ(at::zeros({0}).numel(), 0);
  EXPECT_EQ(at::empty({0, 5}).clone().numel(), 0);
}

}  // namespace
}  // namespace titan
