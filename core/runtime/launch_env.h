// Which rank this process is and where the ranks meet: from flags, or from the variables that its
// launcher set. With core/config the only place where environment variables are read; used by the
// commands that run on many ranks.
#pragma once

#include <optional>
#include <string>

#include <titan/program/environment.h>

namespace titan::core {

/// The flags (core/commands/own_flags.h) that say by hand what a launcher would. Rank and world
/// size belong together; the local rank is 0 unless given; master ("host:port") is needed for more
/// than one rank.
struct LaunchFlags {
  std::optional<int> rank, world_size, local_rank;
  std::optional<std::string> master;
};

struct LaunchEnv {
  int rank = 0, local_rank = 0, world_size = 1;
  /// Ranks on this node. Where the launcher does not say: the world size when master is this
  /// machine's loopback, otherwise the least number that is possible, local_rank + 1.
  int local_world_size = 1;
  /// "torchrun", "titan launch", "Slurm", "Open MPI", "PMI", "PMIx", "MVAPICH2", "PALS", "flags";
  /// "environment" when torchrun's variables were set by something else. Empty: a single process.
  std::string launcher;
  std::string source;  ///< the variables or flags it was read from: "RANK, WORLD_SIZE, LOCAL_RANK"
  std::string master_host;  ///< empty when world_size is 1
  int master_port = 0;      ///< 0 when world_size is 1
  /// The launcher's agent serves a store at master already: every rank is a client. Otherwise rank
  /// 0 serves it.
  bool agent_hosts_store = false;
  int restart_count = 0;  ///< how often the launcher started the group anew
};

/// Asks, in this order: flags; RANK, WORLD_SIZE and LOCAL_RANK; Open MPI; a Slurm step of more than
/// one task; MVAPICH2, PALS, PMI, PMIx; otherwise a single process. A Slurm step whose tasks were
/// made by another launcher (mpiexec inside a job) is left to that launcher. Throws a config Error
/// that names variable and value, or the variables that are missing.
LaunchEnv detect_launch(const LaunchFlags& flags = {});
LaunchEnv detect_launch(const LaunchFlags& flags, const Environment& environment);

/// One line: "rank 1 of 4, local rank 1 of 2, by torchrun (RANK, WORLD_SIZE, LOCAL_RANK); store at
/// host:port hosted by the agent".
std::string describe(const LaunchEnv& launch);

}  // namespace titan::core
