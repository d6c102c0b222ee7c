// Launches a kernel. The linked definition decides where it runs: kernels/*.cu on the GPU in the
// current stream, the emulator on the host.
#pragma once

#include <cstdint>

namespace titan::cuda {

/// Runs `num_blocks` blocks of Kernel::kThreads; with 0 blocks nothing is launched. Defined for the
/// kernels in instances.h.
template <class Kernel>
void launch(const Kernel& kernel, int64_t num_blocks);

/// The cudaStream_t of launches. Defined by the plugin.
void* launch_stream();
/// Throws an error for a launch that the CUDA runtime refused, with its reason `why`.
[[noreturn]] void launch_failed(const char* kernel, const char* why);

}  // namespace titan::cuda
