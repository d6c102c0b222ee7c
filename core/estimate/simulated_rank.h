// Which rank of which world comm.mode = "fake_backend" simulates.
#pragma once

#include <optional>

#include "core/runtime/launch_env.h"

namespace titan::core {

/// NGPU, as torchtitan v0.2.2 has it. Throws a config Error for anything but a number of ranks.
std::optional<int> ranks_of_environment();

/// Flags --rank and --world-size; without them rank 0 of NGPU ranks, or of one. Throws a config
/// Error for a rank that does not exist.
LaunchEnv simulated_rank(const LaunchFlags& flags);

}  // namespace titan::core
