// Counts the epochs of each data source: the log line at the end of an epoch, and the scalar. Used
// by the trainer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <titan/dist/mesh.h>
#include <titan/logger.h>

#include "core/data/batches/loader.h"

namespace titan::core {

/// Thread: trainer thread. References outlive it.
class EpochCounter {
 public:
  /// `loader` is started, its first step not taken.
  EpochCounter(const Loader& loader, const dist::Mesh& mesh);

  /// Compares the epochs after `step` with those of the last call and logs on rank 0 each epoch
  /// that has ended. An epoch of a source has ended when every row of the global batch has begun
  /// the next one. Collective over "dp". One scalar a source; tags live as long as this.
  std::vector<Scalar> count(int64_t step, c10::Device device);

 private:
  const Loader& loader_;
  const dist::Mesh& mesh_;
  std::vector<std::string> names_;
  std::vector<std::string> tags_;
  std::vector<int64_t> begun_with_;  // epochs that had ended on this rank when the run began
  std::vector<int64_t> reported_;    // of all ranks; empty before the first count
};

}  // namespace titan::core
