// Which rank of which world comm.mode = "fake_backend" plays.
#pragma once

#include <optional>

#include "core/runtime/launch_env.h"

namespace titan::core {

/// Flags --rank and --world-size; without them rank 0 of NGPU ranks, as torchtitan v0.2.2 has it,
/// or of one. Throws a config Error for a rank that does not exist.
LaunchEnv played_rank(const LaunchFlags& flags);

}  // namespace titan::core
