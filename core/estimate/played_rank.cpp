#include "core/estimate/played_rank.h"

#include <limits>

#include <titan/error.h>
#include <titan/program/environment.h>

namespace titan::core {

std::optional<int> ranks_of_environment() {
  return Environment::of_process().integer("NGPU", 1, std::numeric_limits<int>::max());
}

LaunchEnv played_rank(const LaunchFlags& flags) {
  LaunchEnv played;
  played.world_size = flags.world_size ? *flags.world_size : ranks_of_environment().value_or(1);
  played.rank = flags.rank.value_or(0);
  TITAN_CHECK(played.rank >= 0 && played.rank < played.world_size, config, "--rank ", played.rank,
              " is not below the ", played.world_size,
              " ranks that comm.mode = \"fake_backend\" plays one of (--world-size, NGPU)");
  played.source = flags.world_size ? "--world-size" : "NGPU";
  return played;
}

}  // namespace titan::core
