// Which rank this process is, from the launcher's environment variables. With the environment of
// plugins (TITAN_PLUGIN_PATH) the only place where environment variables are read.
#pragma once

#include <string>

namespace titan::core {

struct LaunchEnv {
  int rank = 0;
  int local_rank = 0;
  int world_size = 1;
  std::string source;  ///< "RANK, WORLD_SIZE, LOCAL_RANK"; empty: a single process
};

/// Reads torchrun's variables. Throws a config Error for a partial set or values that are not
/// ranks.
LaunchEnv detect_launch();

}  // namespace titan::core
