// Finds this process's rank and the rendezvous address, from flags or from the launcher's
// environment variables. Environment variables are read only here and in core/config. Used by the
// commands that run on many ranks.
#pragma once

#include <optional>
#include <string>

#include <titan/program/environment.h>

namespace titan::core {

/// The flags (core/commands/own_flags.h) that replace a launcher. Rank and world size must be given
/// together; the local rank is 0 by default; more than one rank needs master ("host:port").
struct LaunchFlags {
  std::optional<int> rank, world_size, local_rank;
  std::optional<std::string> master;
};

struct LaunchEnv {
  int rank = 0, local_rank = 0, world_size = 1;
  /// Ranks on this node. If the launcher does not set it: the world size when master is this
  /// machine's loopback address, otherwise the smallest possible number, local_rank + 1.
  int local_world_size = 1;
  /// "torchrun", "titan launch", "Slurm", "Open MPI", "PMI", "PMIx", "MVAPICH2", "PALS", "flags";
  /// "environment" when another program set torchrun's variables. Empty: a single process.
  std::string launcher;
  std::string source;  ///< the variables or flags that were read: "RANK, WORLD_SIZE, LOCAL_RANK"
  std::string master_host;  ///< empty when world_size is 1
  int master_port = 0;      ///< 0 when world_size is 1
  /// The launcher's agent already serves a store at master, and every rank is a client. Otherwise
  /// rank 0 serves it.
  bool agent_hosts_store = false;
  int restart_count = 0;  ///< how often the launcher restarted the group
};

/// Checks, in this order: flags; RANK, WORLD_SIZE and LOCAL_RANK; Open MPI; a Slurm step of more
/// than one task; MVAPICH2, PALS, PMI, PMIx; otherwise a single process. A Slurm step whose tasks
/// were started by another launcher (mpiexec inside a job) is read by that launcher's variables.
/// Throws a config Error that names variable and value, or the variables that are missing.
LaunchEnv detect_launch(const LaunchFlags& flags = {});
LaunchEnv detect_launch(const LaunchFlags& flags, const Environment& environment);

/// One line: "rank 1 of 4, local rank 1 of 2, by torchrun (RANK, WORLD_SIZE, LOCAL_RANK); store at
/// host:port hosted by the agent".
std::string describe(const LaunchEnv& launch);

}  // namespace titan::core
