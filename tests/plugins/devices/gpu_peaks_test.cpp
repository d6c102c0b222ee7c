// The table of published peaks: each driver name must match the right row, or none.
#include "plugins/devices/cuda/gpu_peaks.h"

#include <gtest/gtest.h>

namespace titan::cuda {
namespace {

TEST(GpuPeaks, KnowsTheVariantsOfAModel) {
  EXPECT_EQ(gpu_peak_flops("NVIDIA H100 80GB HBM3", c10::kBFloat16), 989e12);
  EXPECT_EQ(gpu_peak_flops("NVIDIA H100 PCIe", c10::kBFloat16), 756e12);
  EXPECT_EQ(gpu_peak_flops("NVIDIA H100 NVL", c10::kBFloat16), 835e12);
  EXPECT_EQ(gpu_peak_flops("NVIDIA H200", c10::kFloat8_e4m3fn), 1979e12);
  EXPECT_EQ(gpu_peak_flops("NVIDIA A100-SXM4-80GB", c10::kBFloat16), 312e12);
  EXPECT_EQ(gpu_peak_flops("NVIDIA A100-PCIE-40GB", c10::kFloat), 19.5e12);
  EXPECT_EQ(gpu_peak_flops("Tesla V100-SXM2-32GB", c10::kHalf), 125e12);
  EXPECT_EQ(gpu_peak_flops("NVIDIA L40S", c10::kBFloat16), 362e12);
  EXPECT_EQ(gpu_peak_flops("NVIDIA L4", c10::kBFloat16), 121e12);
}

TEST(GpuPeaks, IsSilentAboutWhatItDoesNotKnow) {
  EXPECT_FALSE(gpu_peak_flops("NVIDIA GeForce RTX 4090", c10::kBFloat16));
  EXPECT_FALSE(gpu_peak_flops("NVIDIA GB200", c10::kBFloat16));
  EXPECT_FALSE(gpu_peak_flops("NVIDIA A10G", c10::kBFloat16)) << "is no A10";
  EXPECT_FALSE(gpu_peak_flops("NVIDIA H100 80GB HBM3 MIG 1g.10gb", c10::kBFloat16));
  EXPECT_FALSE(gpu_peak_flops("NVIDIA A100-SXM4-80GB", c10::kFloat8_e4m3fn)) << "has no such units";
  EXPECT_FALSE(gpu_peak_flops("Tesla V100-SXM2-32GB", c10::kBFloat16));
  EXPECT_FALSE(gpu_peak_flops("NVIDIA H100 80GB HBM3", c10::kInt));
}

}  // namespace
}  // namespace titan::cuda
