// Memory that only a GPU needs, for simulated runs: workspaces of LibTorch's libraries, and larger
// chunks of logits. Used by estimates and activation_checkpoint.memory_limit.
#pragma once

#include <cstdint>
#include <memory>

#include "core/config/schema/job_config.h"

namespace torch {
class Library;
}

namespace titan::core {

/// Workspaces that LibTorch allocates for cuBLAS from the caching allocator and keeps: one for each
/// thread that runs matrix products, the trainer's and autograd's. Assumes compute capability 9.0
/// or 10.0. 0 on a CPU.
int64_t library_bytes(const JobConfig& config);

/// While alive, operations on the meta device allocate as on the device of `config`: for a GPU, the
/// fused head's chunks of logits. No change for a CPU. Thread: the trainer thread; at most one
/// object per process.
class SimulatedKernels {
 public:
  explicit SimulatedKernels(const JobConfig& config);
  ~SimulatedKernels();
  SimulatedKernels(const SimulatedKernels&) = delete;

 private:
  std::unique_ptr<torch::Library> replaced_;
};

}  // namespace titan::core
