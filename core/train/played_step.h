// One step of one rank of a layout whose other ranks do not exist (comm.mode = "fake_backend"):
// shapes, schedules, traffic and what the rank must hold, without data or memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/train/assembly.h"

namespace titan::core {

/// What one step has shown.
struct PlayedStep {
  int64_t parameter_bytes = 0;  ///< of this rank's shards
  int64_t gradient_bytes = 0;
  int64_t optimizer_bytes = 0;
  int64_t peak_bytes = 0;  ///< of everything at once from the second step on: these, whole
                           ///< parameters, activations
  std::map<std::pair<std::string, std::string>, dist::Traffic> traffic;  ///< by group and operation
};

/// Runs forward, backward, clipping and the optimizer once on the meta device. `run`: of
/// assemble_played.
PlayedStep play_step(Run& run, const JobConfig& config);

/// As a table for the terminal.
std::string to_text(const PlayedStep& step);

}  // namespace titan::core
