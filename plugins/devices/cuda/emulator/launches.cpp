// Implements launch() for tests: runs every kernel in the emulator on the host.
#include "../kernels/instances.h"
#include "../kernels/launch.h"
#include "emulator.h"

namespace titan::cuda {

template <class Kernel>
void launch(const Kernel& kernel, int64_t num_blocks) {
  emulator::launch(kernel, num_blocks);
}

}  // namespace titan::cuda

#define TITAN_LAUNCHED_BY_EMULATOR(...) \
  template void titan::cuda::launch(const __VA_ARGS__& kernel, int64_t num_blocks);

using namespace titan::cuda;

TITAN_CUDA_NORM_KERNELS(TITAN_LAUNCHED_BY_EMULATOR)
TITAN_CUDA_LAYER_KERNELS(TITAN_LAUNCHED_BY_EMULATOR)
TITAN_CUDA_STEP_KERNELS(TITAN_LAUNCHED_BY_EMULATOR)
