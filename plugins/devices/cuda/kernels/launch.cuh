// launch() on a GPU. Included by the .cu files only.
#pragma once

#include "launch.h"

namespace titan::cuda {

template <class Kernel>
__global__ void __launch_bounds__(Kernel::kThreads, Kernel::kBlocks)
    kernel_entry(const Kernel kernel) {
  kernel();
}

template <class Kernel>
void launch(const Kernel& kernel, int64_t num_blocks) {
  if (num_blocks == 0) return;
  constexpr int64_t kMostBlocks = (int64_t{1} << 31) - 1;
  if (num_blocks > kMostBlocks) launch_failed(__PRETTY_FUNCTION__, "more blocks than a grid holds");
  kernel_entry<<<static_cast<unsigned>(num_blocks), Kernel::kThreads, 0,
                 static_cast<cudaStream_t>(launch_stream())>>>(kernel);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess)
    launch_failed(__PRETTY_FUNCTION__, cudaGetErrorString(error));
}

}  // namespace titan::cuda

#define TITAN_LAUNCHED_BY_NVCC(...) \
  template void titan::cuda::launch(const __VA_ARGS__& kernel, int64_t num_blocks);
