#include "instances.h"
#include "launch.cuh"

using namespace titan::cuda;

TITAN_CUDA_STEP_KERNELS(TITAN_LAUNCHED_BY_NVCC)
