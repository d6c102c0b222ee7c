// One step of one rank of a layout whose other ranks do not exist (comm.mode = "fake_backend",
// `titan estimate`): shapes, schedules, traffic and what the rank must hold, without data or
// memory.
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

/// What one step has shown.
struct SimulatedStep {
  int64_t parameter_bytes = 0;  ///< of this rank's shards
  int64_t gradient_bytes = 0;   ///< before the update; 0 where each is used as it is completed
  int64_t optimizer_bytes = 0;
  MemoryPeak peak;  ///< of everything at once from the second step on
  /// Where experts are dealt to ranks, and SimulationOptions ask for it: of a step in which all
  /// tokens of every layer come to those of this rank. `peak` is of even load.
  std::optional<MemoryPeak> uneven_peak;
  std::vector<WatchedLayer> layers;
  double recomputed_flops = 0;  ///< that activation checkpointing costs in a step
  std::map<std::pair<std::string, std::string>, dist::Traffic> traffic;  ///< by group and operation
};

/// What a simulated step measures on request, in addition to what it always measures.
struct SimulationOptions {
  bool finds_uneven_peak = false;  ///< SimulatedStep::uneven_peak: costs a third step
};

/// Runs forward, backward, clipping and the optimizer twice on the meta device, the second time
/// with the optimizer's states. `run`: of assemble_simulated, which serves once.
SimulatedStep simulate_step(Run& run, const JobConfig& config,
                            const SimulationOptions& options = {});

/// As a table for the terminal.
std::string to_text(const SimulatedStep& step);

}  // namespace titan::core
