// The rank and world size that comm.mode = "fake_backend" simulates. Used by titan train and titan
// estimate.
#pragma once

#include <optional>

#include "core/runtime/launch_env.h"

namespace titan::core {

/// Environment variable NGPU, as in torchtitan v0.2.2. Throws a config Error for an invalid number
/// of ranks.
std::optional<int> ranks_of_environment();

/// Flags --rank and --world-size; by default rank 0 of NGPU ranks, or of one rank. Throws a config
/// Error for a rank that does not exist.
LaunchEnv simulated_rank(const LaunchFlags& flags);

}  // namespace titan::core
