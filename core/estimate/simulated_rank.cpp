#include "core/estimate/simulated_rank.h"

#include <limits>

#include <titan/error.h>
#include <titan/program/environment.h>

namespace titan::core {

std::optional<int> ranks_of_environment() {
  return Environment::of_process().integer("NGPU", 1, std::numeric_limits<int>::max());
}

LaunchEnv simulated_rank(const LaunchFlags& flags) {
  LaunchEnv simulated;
  simulated.world_size = flags.world_size ? *flags.world_size : ranks_of_environment().value_or(1);
  simulated.rank = flags.rank.value_or(0);
  TITAN_CHECK(
      simulated.rank >= 0 && simulated.rank < simulated.world_size, config, "--rank ",
      simulated.rank, " must be below ", simulated.world_size,
      ", the number of ranks that comm.mode = \"fake_backend\" simulates (--world-size, NGPU)");
  simulated.source = flags.world_size ? "--world-size" : "NGPU";
  return simulated;
}

}  // namespace titan::core
