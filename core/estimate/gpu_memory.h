// Memory of a dry run that only a GPU needs: workspaces of LibTorch's libraries, and larger chunks
// of logits. Used by estimates and activation_checkpoint.memory_limit.
#pragma once

#include <cstdint>
#include <memory>

#include "core/config/schema/job_config.h"

namespace torch {
class Library;
}

namespace titan::core {

/// What LibTorch takes from the caching allocator for cuBLAS and keeps: one workspace for each
/// thread that multiplies, the trainer's and autograd's. A dry run knows no compute capability: 9.0
/// or 10.0 is assumed. 0 on a CPU.
int64_t library_bytes(const JobConfig& config);

/// While alive, operations of the meta device take the memory of the device that `config` is for:
/// of a GPU the chunks of logits that its fused head has. No change for a CPU.
/// Thread: one at a time in the process; the trainer's.
class SimulatedKernels {
 public:
  explicit SimulatedKernels(const JobConfig& config);
  ~SimulatedKernels();
  SimulatedKernels(const SimulatedKernels&) = delete;

 private:
  std::unique_ptr<torch::Library> replaced_;
};

}  // namespace titan::core
