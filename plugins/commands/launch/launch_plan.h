// The plan of `titan launch`: number of ranks, rendezvous address, shown ranks. Made from flags and
// environment and checked completely before anything starts. Used by rank_group.cpp and plugin.cpp.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <titan/program/descriptor.h>
#include <titan/program/environment.h>

#include <titan/program/host_port.h>

namespace titan::launching {

/// The flags as written. An absent flag comes from the PET_ variable of the same name (torchrun's
/// variables for its options), else from a default.
struct LaunchRequest {
  std::optional<std::string> nproc;          ///< a number, "cpu", "gpu" or "auto"
  std::optional<std::string> nnodes;         ///< default 1
  std::optional<std::string> node_rank;      ///< needed for more than one node
  std::optional<std::string> master;         ///< host:port, needed for more than one node
  std::optional<std::string> ranks;          ///< MIN:MAX, instead of nproc
  std::optional<std::string> available;      ///< a shell command that prints a number of ranks
  std::optional<std::string> max_restarts;   ///< default 0
  std::optional<std::string> same_failures;  ///< default 3 for a training, else 0
  bool in_process = false;                   ///< survivors of a failure stay
  std::optional<std::string> spares;         ///< processes that wait for a lost rank; default 0
  bool is_training = false;                  ///< the program is `titan train`
  std::optional<std::string> log_dir;  ///< default: a new folder below output_folder/launch_logs
  std::string output_folder = "./outputs";  ///< of the job to start
  std::string grace = "15";                 ///< seconds between SIGTERM and SIGKILL
  std::string program;                      ///< path of the program to start
  std::vector<std::string> arguments;       ///< of that program
};

struct LaunchPlan {
  std::string program;
  std::vector<std::string> arguments;
  int ranks_here = 1;
  int num_nodes = 1;
  int node_rank = 0;
  std::optional<HostPort>
      master;  ///< absent: a free port of this machine, a new one for each start
  int max_restarts = 0;
  std::filesystem::path run_folder;  ///< of a training; else empty
  /// The job ends after this many failures in a row with one cause and no progress; 0: never.
  int same_failures = 0;
  bool in_process = false;  ///< a restart keeps the processes of the ranks that are left
  int num_spares = 0;       ///< with in_process
  /// With --ranks: a start takes the largest number of ranks from least to most that the layout
  /// allows and that can start; 0: ranks_here never changes.
  int least_ranks = 0, most_ranks = 0;
  std::string available;  ///< with --ranks: a shell command; empty: see RankLimit
  /// A dying rank closes its connections, and other ranks may exit before it does. Failures within
  /// this time are judged together.
  std::chrono::milliseconds same_moment{200};
  /// After the first failure the other ranks have this long to notice and report it themselves.
  std::chrono::milliseconds notice{3000};
  std::chrono::milliseconds grace{15000};  ///< then, from SIGTERM to SIGKILL
  std::filesystem::path log_dir;
  std::vector<int> shown_ranks;  ///< global ranks

  bool is_elastic() const { return most_ranks > 0; }
  int first_rank() const { return node_rank * ranks_here; }
  int world_size() const { return num_nodes * ranks_here; }
  bool shows(int rank) const;
  std::filesystem::path log_of(int rank) const;
  std::filesystem::path error_file_of(int rank) const;
  /// Spares are counted from 0 over the whole job.
  std::filesystem::path log_of_spare(int number) const;
};

/// Throws a config Error for everything that is wrong or missing.
LaunchPlan make_launch_plan(const LaunchRequest& request, const Environment& environment);

/// The environment of one rank, "NAME=value": this process's, with the variables of the rank.
std::vector<std::string> rank_environment(const LaunchPlan& plan, const Environment& environment,
                                          int local_rank, const HostPort& master, int attempt);

/// A bound port of 127.0.0.1 for the ranks about to start. While it is held, the system assigns it
/// to no process that asks for any free port. No process listens on it, so the store, which binds
/// its number with SO_REUSEADDR, gets it.
struct HeldPort {
  Descriptor socket;
  int number = 0;
};

/// Throws an io Error when there is none.
HeldPort hold_free_port();

}  // namespace titan::launching
