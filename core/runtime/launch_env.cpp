#include "core/runtime/launch_env.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <vector>

#include <titan/error.h>
#include <titan/program/host_port.h>

#include "core/runtime/host_list.h"

namespace titan::core {
namespace {

constexpr int kMostRanks = 1 << 20;
constexpr int kMostPort = 65535;
constexpr int kFirstDerivedPort = 20000, kNumDerivedPorts = 20000;
constexpr int64_t kFirstPseudoStep = 0xfffffff0;  // Slurm numbers batch scripts and the like so

/// The variables of a launcher that starts one process per rank and names four numbers.
struct Family {
  const char* launcher;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};

constexpr Family kTorchrun = {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Family kOpenMpi = {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                             "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
// Checked in this order: the first two set PMI_RANK as well, the third is Cray's form of it.
constexpr Family kAfterSlurm[] = {
    {"MVAPICH2", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE"},
    {"PALS", "PALS_RANKID", "PMI_SIZE", "PALS_LOCAL_RANKID", "PMI_LOCAL_SIZE"},
    {"PMI", "PMI_RANK", "PMI_SIZE", "PMI_LOCAL_RANK", "PMI_LOCAL_SIZE"},
    {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"PMIx", "PMIX_RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}};

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

/// Detects the launch from one environment.
class Detection {
 public:
  Detection(const LaunchFlags& flags, const Environment& environment)
      : flags_(flags), environment_(environment) {}

  LaunchEnv run() {
    std::optional<LaunchEnv> found = from_flags();
    if (!found) found = from_torchrun();
    if (!found) {
      found = from_other_launcher();
      check_strays(found);
    }
    LaunchEnv launch = found.value_or(LaunchEnv{});
    if (launch.local_world_size == 0)
      launch.local_world_size = launch.world_size == 1 || is_loopback(launch.master_host)
                                    ? launch.world_size
                                    : launch.local_rank + 1;
    for (const char* name : {"SLURM_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT"})
      if (const auto count = environment_.integer(name, 0, kMostRanks))
        launch.restart_count = *count;
    return launch;
  }

 private:
  std::optional<LaunchEnv> from_flags() const {
    const LaunchFlags& f = flags_;
    if (!f.rank && !f.world_size && !f.local_rank && !f.master) return std::nullopt;
    TITAN_CHECK(f.rank && f.world_size, config, f.rank ? "--world-size" : "--rank",
                " is missing: --rank and --world-size belong together, with --master host:port for "
                "more than one rank");
    LaunchEnv launch{
        .rank = *f.rank,
        .local_rank = f.local_rank.value_or(0),
        .world_size = *f.world_size,
        .local_world_size = 0,  // no flag sets it
        .launcher = "flags",
        .source = f.local_rank ? "--rank, --world-size, --local-rank" : "--rank, --world-size"};
    check(launch, "--rank", "--world-size", "--local-rank");
    if (launch.world_size > 1) {
      TITAN_CHECK(f.master, config, "--master host:port is missing: ", launch.world_size,
                  " ranks have to find each other; rank 0 listens there");
      const HostPort master = parse_host_port(*f.master, "--master");
      launch.master_host = master.host, launch.master_port = master.port;
    }
    return launch;
  }

  std::optional<LaunchEnv> from_torchrun() const {
    if (!environment_.has("RANK")) return std::nullopt;
    TITAN_CHECK(!environment_.has("WORLD_SIZE") || environment_.has("LOCAL_RANK") ||
                    !environment_.has("MASTER_ADDR"),
                config,
                "RANK, WORLD_SIZE and MASTER_ADDR are set without LOCAL_RANK, as in a pod of a "
                "Kubeflow PyTorchJob, where RANK counts pods; start the ranks inside the pod with "
                "titan launch --nproc N --nnodes $WORLD_SIZE --node-rank $RANK --master "
                "$MASTER_ADDR:$MASTER_PORT -- train ..., or with torchrun");
    LaunchEnv launch = read(kTorchrun);
    if (environment_.has("TORCHELASTIC_RUN_ID")) {
      launch.launcher = "torchrun";
    } else {
      launch.launcher =
          environment_.get("TITAN_LAUNCHER") == "titan" ? "titan launch" : "environment";
    }
    if (launch.world_size == 1) return launch;
    require({"MASTER_ADDR", "MASTER_PORT"});
    launch.master_host = *environment_.get("MASTER_ADDR");
    launch.master_port = *environment_.integer("MASTER_PORT", 1, kMostPort);
    launch.agent_hosts_store = environment_.get("TORCHELASTIC_USE_AGENT_STORE") == "True";
    return launch;
  }

  std::optional<LaunchEnv> from_other_launcher() const {
    if (environment_.has(kOpenMpi.rank)) return with_master(read(kOpenMpi));
    if (!is_another_launchers_slurm_task())
      if (const auto step_size = slurm_step_size())
        return *step_size > 1 ? std::optional(from_slurm(*step_size)) : std::nullopt;
    for (const Family& family : kAfterSlurm) {
      // the two forms of PMI differ in their local rank
      const bool is_cray = std::string_view(family.local_rank) == "PMI_LOCAL_RANK";
      if (!environment_.has(family.rank) || (is_cray && !environment_.has(family.local_rank)))
        continue;
      return with_master(read(family));
    }
    return std::nullopt;
  }

  /// A WORLD_SIZE or LOCAL_RANK without torchrun's other variables must equal the launcher's value.
  void check_strays(const std::optional<LaunchEnv>& found) const {
    const auto size = environment_.integer("WORLD_SIZE", 1, kMostRanks);
    const auto local = environment_.integer("LOCAL_RANK", 0, kMostRanks);
    if (!size && !local) return;
    if (!found) require({"RANK", "WORLD_SIZE", "LOCAL_RANK"});
    TITAN_CHECK(!size || *size == found->world_size, config, "WORLD_SIZE = ", *size, " but ",
                found->launcher, " started ", found->world_size, " ranks (", found->source,
                "); unset WORLD_SIZE");
    TITAN_CHECK(!local || *local == found->local_rank, config, "LOCAL_RANK = ", *local, " but ",
                found->launcher, " says ", found->local_rank, " (", found->source,
                "); unset LOCAL_RANK");
  }

  void require(const std::vector<std::string>& names) const {
    std::vector<std::string> missing;
    for (const std::string& name : names)
      if (!environment_.has(name)) missing.push_back(name);
    TITAN_CHECK(missing.empty(), config,
                "the launcher's environment is incomplete: ", join(missing),
                " not set; start with a launcher that sets ", join(names), ", or unset the rest");
  }

  /// The four numbers of a launcher whose rank variable is set.
  LaunchEnv read(const Family& family) const {
    require({family.rank, family.size, family.local_rank});
    LaunchEnv launch{
        .rank = *environment_.integer(family.rank, 0, kMostRanks),
        .local_rank = *environment_.integer(family.local_rank, 0, kMostRanks),
        .world_size = *environment_.integer(family.size, 1, kMostRanks),
        .local_world_size = environment_.integer(family.local_size, 1, kMostRanks).value_or(0),
        .launcher = family.launcher,
        .source = join({family.rank, family.size, family.local_rank})};
    check(launch, family.rank, family.size, family.local_rank);
    return launch;
  }

  /// The checks that need no master; a local size of 0 is not known yet.
  static void check(const LaunchEnv& launch, const char* rank, const char* size,
                    const char* local_rank) {
    TITAN_CHECK(launch.world_size >= 1, config, size, " = ", launch.world_size, " must be >= 1");
    TITAN_CHECK(launch.rank >= 0 && launch.rank < launch.world_size, config, rank, " = ",
                launch.rank, " is not below ", size, " = ", launch.world_size);
    const int ranks_here =
        launch.local_world_size > 0 ? launch.local_world_size : launch.world_size;
    TITAN_CHECK(ranks_here <= launch.world_size, config, ranks_here,
                " ranks on this node are more than ", size, " = ", launch.world_size);
    TITAN_CHECK(
        launch.local_rank >= 0 &&
                launch.local_rank<ranks_here, config, local_rank, " = ", launch.local_rank,
                                  " is not below the ", ranks_here, launch.local_world_size> 0
            ? " ranks of this node"
            : " ranks of the run");
  }

  // --- Slurm

  /// The number of tasks in this process's step; absent outside steps, as in a batch script.
  std::optional<int> slurm_step_size() const {
    if (!environment_.has("SLURM_PROCID")) return std::nullopt;
    if (const auto size = environment_.integer("SLURM_STEP_NUM_TASKS", 1, kMostRanks)) return size;
    const std::string step = environment_.get("SLURM_STEP_ID").value_or("");
    int64_t number = 0;
    const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), number);
    const bool is_step = !step.empty() && error == std::errc() &&
                         end == step.data() + step.size() && number < kFirstPseudoStep;
    return is_step ? environment_.integer("SLURM_NTASKS", 1, kMostRanks) : std::nullopt;
  }

  /// With mpiexec inside a job, Slurm starts one task per node, which starts the ranks.
  bool is_another_launchers_slurm_task() const {
    const auto differs = [&](const char* name, const char* slurm_name) {
      const auto value = environment_.get(name);
      return value && value != environment_.get(slurm_name);
    };
    const char* const size =
        environment_.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
    return differs("PMI_SIZE", size) || differs("PMI_RANK", "SLURM_PROCID") ||
           differs("MV2_COMM_WORLD_SIZE", size) || differs("MV2_COMM_WORLD_RANK", "SLURM_PROCID");
  }

  LaunchEnv from_slurm(int size) const {
    require({"SLURM_PROCID", "SLURM_LOCALID"});
    const bool has_step_size = environment_.has("SLURM_STEP_NUM_TASKS");
    LaunchEnv launch{.rank = *environment_.integer("SLURM_PROCID", 0, kMostRanks),
                     .local_rank = *environment_.integer("SLURM_LOCALID", 0, kMostRanks),
                     .world_size = size,
                     .local_world_size = slurm_tasks_here(size),
                     .launcher = "Slurm"};
    const char* const size_name = has_step_size ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
    launch.source = join({"SLURM_PROCID", size_name, "SLURM_LOCALID"});
    launch.master_host = slurm_first_host();
    const auto port = environment_.integer("MASTER_PORT", 1, kMostPort);
    if (!port) require({"SLURM_JOB_ID"});
    launch.master_port =
        port ? *port
             : kFirstDerivedPort + static_cast<int>(parse_integer(*environment_.get("SLURM_JOB_ID"),
                                                                  "environment variable "
                                                                  "SLURM_JOB_ID",
                                                                  0, INT64_MAX) %
                                                    kNumDerivedPorts);
    check(launch, "SLURM_PROCID", size_name, "SLURM_LOCALID");
    return launch;
  }

  /// 0 if Slurm does not set it. A list that does not add up to the step describes the whole job.
  int slurm_tasks_here(int size) const {
    const auto node = environment_.integer("SLURM_NODEID", 0, kMostRanks);
    for (const char* name : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}) {
      const auto list = environment_.get(name);
      if (!list) continue;
      const std::vector<int> tasks = expand_tasks_per_node(*list, name);
      int64_t sum = 0;
      for (const int count : tasks) sum += count;
      if (sum != size) continue;
      if (tasks.size() == 1) return tasks.front();
      if (node && static_cast<size_t>(*node) < tasks.size()) return tasks[*node];
    }
    const auto each = environment_.integer("SLURM_NTASKS_PER_NODE", 1, kMostRanks);
    return each && *each <= size ? *each : 0;
  }

  std::string slurm_first_host() const {
    if (const auto host = environment_.get("MASTER_ADDR")) return *host;
    for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"})
      if (const auto list = environment_.get(name)) return expand_host_list(*list, name).front();
    if (const auto address = environment_.get("SLURM_LAUNCH_NODE_IPADDR")) return *address;
    fail(ErrorKind::config,
         "Slurm does not say where rank 0 is: SLURM_STEP_NODELIST, SLURM_JOB_NODELIST not set; "
         "set MASTER_ADDR");
  }

  // --- MPI

  /// MPI's launchers pass no rendezvous address: on one node it is derived, else the user must pass
  /// it.
  LaunchEnv with_master(LaunchEnv launch) const {
    if (launch.world_size == 1) return launch;
    const auto host = environment_.get("MASTER_ADDR");
    TITAN_CHECK(host || launch.local_world_size == launch.world_size, config, launch.launcher,
                " does not say where rank 0 is: pass MASTER_ADDR, the name of its host, to every "
                "rank (mpirun -x MASTER_ADDR=..., mpiexec -genv MASTER_ADDR ...)");
    const auto port = environment_.integer("MASTER_PORT", 1, kMostPort);
    const int derived = port ? *port : port_of_job();
    TITAN_CHECK(derived != 0, config, launch.launcher,
                " gives no job number to derive a port from: pass MASTER_ADDR and MASTER_PORT to "
                "every rank");
    launch.master_host = host.value_or("127.0.0.1");
    launch.master_port = derived;
    return launch;
  }

  /// The same on each rank, different for most other jobs; 0 without a job number.
  int port_of_job() const {
    for (const char* name : {"OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE", "PALS_APID",
                             "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"})
      if (const auto job = environment_.get(name)) {
        uint64_t hash = 14695981039346656037u;  // FNV-1a: fixed, so that all ranks agree
        for (const char c : *job) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
        return kFirstDerivedPort + static_cast<int>(hash % kNumDerivedPorts);
      }
    return 0;
  }

  const LaunchFlags& flags_;
  const Environment& environment_;
};

}  // namespace

LaunchEnv detect_launch(const LaunchFlags& flags) {
  return detect_launch(flags, Environment::of_process());
}

LaunchEnv detect_launch(const LaunchFlags& flags, const Environment& environment) {
  return Detection(flags, environment).run();
}

std::string describe(const LaunchEnv& launch) {
  if (launch.launcher.empty()) return "a single process, no launcher";
  const auto number = [](int n) { return std::to_string(n); };
  std::string text = "rank " + number(launch.rank) + " of " + number(launch.world_size) +
                     ", local rank " + number(launch.local_rank) + " of " +
                     number(launch.local_world_size) + ", by " + launch.launcher + " (" +
                     launch.source + ")";
  if (launch.restart_count > 0) text += ", restart " + number(launch.restart_count);
  if (launch.world_size == 1) return text;
  const bool is_v6 = launch.master_host.find(':') != std::string::npos;
  return text + "; store at " + (is_v6 ? "[" + launch.master_host + "]" : launch.master_host) +
         ":" + number(launch.master_port) + " hosted by " +
         (launch.agent_hosts_store ? "the agent" : "rank 0");
}

}  // namespace titan::core
