// Simulates one step of one rank of a layout whose other ranks do not exist: shapes, schedules,
// traffic and memory, without data or real memory. Used by comm.mode = "fake_backend" and `titan
// estimate`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/estimate/layer_watch.h"
#include "core/runtime/tensors/meta_memory.h"
#include "core/train/assembly/assembly.h"

namespace titan::core {

/// Measurements of one simulated step.
struct SimulatedStep {
  int64_t parameter_bytes = 0;  ///< of this rank's shards
  int64_t gradient_bytes = 0;   ///< before the update; 0 if each is consumed at once
  int64_t optimizer_bytes = 0;
  MemoryPeak peak;  ///< of all memory, in the second step
  /// With expert parallelism, if SimulationOptions request it: the peak of a step in which all
  /// tokens of every layer go to this rank's experts. `peak` assumes even load.
  std::optional<MemoryPeak> uneven_peak;
  std::vector<WatchedLayer> layers;
  double recomputed_flops = 0;  ///< of activation checkpointing, per step
  std::map<std::pair<std::string, std::string>, dist::Traffic> traffic;  ///< by group and operation
};

/// Additional measurements of a simulated step.
struct SimulationOptions {
  bool finds_uneven_peak = false;  ///< SimulatedStep::uneven_peak: costs a third step
};

/// Runs forward, backward, clipping and the optimizer twice on the meta device, the second time
/// with the optimizer's states. `run`: from assemble_simulated, used only once.
SimulatedStep simulate_step(Run& run, const JobConfig& config,
                            const SimulationOptions& options = {});

/// A table for the terminal.
std::string to_text(const SimulatedStep& step);

}  // namespace titan::core
