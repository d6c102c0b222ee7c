// Starts a kernel. Who links decides where it runs: kernels/*.cu on the GPU, in the current stream;
// the emulator on the host.
#pragma once

#include <cstdint>

namespace titan::cuda {

/// On `num_blocks` blocks of Kernel::kThreads; none is no launch. Defined for what instances.h
/// lists.
template <class Kernel>
void launch(const Kernel& kernel, int64_t num_blocks);

/// The stream that launches go to, a cudaStream_t. Defined by the plugin.
void* launch_stream();
/// Throws: the runtime refused a launch, and says why.
[[noreturn]] void launch_failed(const char* kernel, const char* why);

}  // namespace titan::cuda
