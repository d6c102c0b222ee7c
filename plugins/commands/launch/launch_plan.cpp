#include "launch_plan.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <tuple>
#include <utility>

#include <titan/error.h>
#include <titan/program/clock.h>

namespace titan::launching {
namespace {

namespace fs = std::filesystem;

constexpr int kMostRanksHere = 1024, kMostNodes = 1 << 16, kMostRestarts = 1000;
constexpr int kSameFailures = 3;
constexpr int kMostGrace = 24 * 3600;
constexpr char kDefaultMasterPort[] = "29500";  // torchrun's

/// A value and its origin, for errors.
struct Setting {
  std::string text, what;

  int integer(int lowest, int highest) const {
    return static_cast<int>(parse_integer(text, what, lowest, highest));
  }
};

std::optional<Setting> setting(const std::optional<std::string>& value, const char* flag,
                               const Environment& environment, const char* variable) {
  if (value) return Setting{*value, flag};
  if (const auto found = environment.get(variable))
    return Setting{*found, std::string("environment variable ") + variable};
  return std::nullopt;
}

int num_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

/// The GPUs listed in CUDA_VISIBLE_DEVICES, else those with a device file.
int num_gpus(const Environment& environment) {
  const auto& variables = environment.variables();
  if (const auto visible = variables.find("CUDA_VISIBLE_DEVICES"); visible != variables.end()) {
    const std::string& list = visible->second;
    const bool is_none = list.empty() || list.front() == '-';
    return is_none ? 0 : 1 + static_cast<int>(std::count(list.begin(), list.end(), ','));
  }
  int count = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/dev", error)) {
    const std::string name = entry.path().filename().string();
    count += name.size() > 6 && name.starts_with("nvidia") &&
             std::all_of(name.begin() + 6, name.end(),
                         [](unsigned char c) { return std::isdigit(c) != 0; });
  }
  return count;
}

int ranks_of(const Setting& nproc, const Environment& environment) {
  if (nproc.text == "cpu") return num_cpus();
  const int gpus = num_gpus(environment);
  if (nproc.text == "auto") return gpus > 0 ? gpus : num_cpus();
  if (nproc.text != "gpu") {
    const bool is_number =
        !nproc.text.empty() && nproc.text.find_first_not_of("-0123456789") == std::string::npos;
    TITAN_CHECK(is_number, config, nproc.what, " = '", nproc.text,
                "' is not a number of ranks, nor 'cpu', 'gpu' or 'auto'");
    return nproc.integer(1, kMostRanksHere);
  }
  TITAN_CHECK(gpus > 0, config, nproc.what, " = 'gpu' but no GPU is visible here; give a number");
  return gpus;
}

/// "MIN:MAX" as a pair.
std::pair<int, int> range_of(const Setting& ranks) {
  const size_t colon = ranks.text.find(':');
  TITAN_CHECK(colon != std::string::npos, config, ranks.what, " = '", ranks.text,
              "' is not MIN:MAX, such as 1:4; --nproc takes a fixed number");
  const int least =
      Setting{ranks.text.substr(0, colon), "MIN of --ranks"}.integer(1, kMostRanksHere);
  const int most =
      Setting{ranks.text.substr(colon + 1), "MAX of --ranks"}.integer(least, kMostRanksHere);
  return {least, most};
}

int nodes_of(const Setting& nnodes) {
  const size_t colon = nnodes.text.find(':');  // torchrun's MIN:MAX
  if (colon == std::string::npos) return nnodes.integer(1, kMostNodes);
  const std::string least = nnodes.text.substr(0, colon), most = nnodes.text.substr(colon + 1);
  TITAN_CHECK(least == most, config, nnodes.what, " = '", nnodes.text,
              "' lets the number of nodes change, which needs torchrun; titan launch takes a fixed "
              "number");
  return Setting{least, nnodes.what}.integer(1, kMostNodes);
}

std::optional<HostPort> master_of(const LaunchRequest& request, const Environment& environment) {
  if (request.master) return parse_host_port(*request.master, "--master");
  const auto host = environment.get("PET_MASTER_ADDR");
  if (!host) return std::nullopt;
  const std::string port = environment.get("PET_MASTER_PORT").value_or(kDefaultMasterPort);
  return HostPort{*host, static_cast<int>(parse_integer(
                             port, "environment variable PET_MASTER_PORT", 1, 65535))};
}

std::vector<int> shown_ranks(const Environment& environment, int world_size) {
  const std::string list = environment.get("LOG_RANK").value_or("0");
  std::vector<int> ranks;
  for (size_t start = 0; start <= list.size();) {
    const size_t end = std::min(list.find(',', start), list.size());
    const std::string item = list.substr(start, end - start);
    ranks.push_back(static_cast<int>(parse_integer(
        item,
        list == item ? "environment variable LOG_RANK" : "a rank of environment variable LOG_RANK",
        0, world_size - 1)));
    start = end + 1;
  }
  return ranks;
}

fs::path new_log_folder(const std::string& output_folder) {
  return fs::path(output_folder) / "launch_logs" /
         (local_time_text(wall_seconds(), "%Y%m%d-%H%M%S") + "-" + std::to_string(::getpid()));
}

double seconds_of(const std::string& text, const std::string& what) {
  double seconds = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  TITAN_CHECK(error == std::errc() && end == text.data() + text.size() && seconds >= 0 &&
                  seconds <= kMostGrace,
              config, what, " = '", text, "' is not a number of seconds from 0 to ", kMostGrace);
  return seconds;
}

void check_program(const std::string& program) {
  std::error_code error;
  TITAN_CHECK(fs::is_regular_file(program, error), config, "there is no program '", program, "'");
  TITAN_CHECK(::access(program.c_str(), X_OK) == 0, config, "'", program,
              "' is not executable: ", system_message(errno));
}

/// Restarts that keep the processes of the ranks that are left.
void plan_in_process(LaunchPlan& plan, const LaunchRequest& request) {
  plan.in_process = request.in_process;
  if (request.spares) {
    TITAN_CHECK(request.in_process, config,
                "--spares needs --in-process: an ordinary restart starts every rank again");
    plan.num_spares = Setting{*request.spares, "--spares"}.integer(0, kMostRanksHere);
  }
  if (!request.in_process) return;
  TITAN_CHECK(request.is_training, config,
              "--in-process needs titan train: other programs cannot begin again in their process");
  TITAN_CHECK(plan.num_nodes == 1, config, "--in-process with ", plan.num_nodes,
              " nodes: the launcher knows the ranks of its own node only; leave it out and use "
              "torchrun or the scheduler");
  TITAN_CHECK(!plan.is_elastic(), config,
              "--in-process and --ranks exclude each other: the number of ranks cannot change in a "
              "process that stays");
  TITAN_CHECK(!plan.master, config,
              "--in-process chooses a new rendezvous address for each restart; leave out --master "
              "and unset PET_MASTER_ADDR");
  TITAN_CHECK(plan.max_restarts > 0, config, "--in-process needs --max-restarts N, at least 1");
}

}  // namespace

bool LaunchPlan::shows(int rank) const {
  return std::find(shown_ranks.begin(), shown_ranks.end(), rank) != shown_ranks.end();
}

fs::path LaunchPlan::log_of(int rank) const {
  return log_dir / ("rank" + std::to_string(rank) + ".log");
}

fs::path LaunchPlan::error_file_of(int rank) const {
  return log_dir / ("rank" + std::to_string(rank) + ".error.json");
}

fs::path LaunchPlan::log_of_spare(int number) const {
  return log_dir / ("spare" + std::to_string(number) + ".log");
}

LaunchPlan make_launch_plan(const LaunchRequest& request, const Environment& environment) {
  const auto find = [&](const std::optional<std::string>& value, const char* flag,
                        const char* variable) {
    return setting(value, flag, environment, variable);
  };
  LaunchPlan plan{.program = request.program, .arguments = request.arguments};
  check_program(plan.program);

  if (request.ranks) {
    TITAN_CHECK(!request.nproc, config,
                "--ranks and --nproc exclude each other: --ranks MIN:MAX "
                "lets restarts change the number of ranks");
    TITAN_CHECK(request.is_training, config,
                "--ranks needs titan train, whose layout determines the possible numbers of ranks; "
                "use --nproc");
    std::tie(plan.least_ranks, plan.most_ranks) = range_of({*request.ranks, "--ranks"});
    plan.ranks_here = plan.most_ranks;
    plan.available = request.available.value_or("");
  } else {
    const auto nproc = find(request.nproc, "--nproc", "PET_NPROC_PER_NODE");
    TITAN_CHECK(nproc, config, "--nproc is missing: how many ranks to start on this node");
    TITAN_CHECK(!request.available, config, "--available needs --ranks MIN:MAX");
    plan.ranks_here = ranks_of(*nproc, environment);
  }
  if (const auto nnodes = find(request.nnodes, "--nnodes", "PET_NNODES"))
    plan.num_nodes = nodes_of(*nnodes);
  plan.master = master_of(request, environment);
  const auto node_rank = find(request.node_rank, "--node-rank", "PET_NODE_RANK");
  if (node_rank) plan.node_rank = node_rank->integer(0, plan.num_nodes - 1);
  if (plan.num_nodes > 1) {
    TITAN_CHECK(node_rank, config, "--node-rank is missing: which of the ", plan.num_nodes,
                " nodes this is, from 0");
    TITAN_CHECK(plan.master, config, "--master host:port is missing: where the ranks of ",
                plan.num_nodes, " nodes find each other; the host is node 0");
  }

  if (const auto restarts = find(request.max_restarts, "--max-restarts", "PET_MAX_RESTARTS"))
    plan.max_restarts = restarts->integer(0, kMostRestarts);
  TITAN_CHECK(plan.max_restarts == 0 || plan.num_nodes == 1, config,
              "--max-restarts = ", plan.max_restarts, " with ", plan.num_nodes,
              " nodes: one node cannot restart the others; use torchrun or the scheduler");
  TITAN_CHECK(
      !plan.is_elastic() || plan.num_nodes == 1, config, "--ranks with ", plan.num_nodes,
      " nodes: one node cannot change the ranks of the others; use torchrun --nnodes MIN:MAX");
  plan_in_process(plan, request);
  plan.same_failures =
      request.same_failures
          ? Setting{*request.same_failures, "--same-failures"}.integer(0, kMostRestarts)
          : (request.is_training ? kSameFailures : 0);
  plan.grace = std::chrono::milliseconds(
      static_cast<int64_t>(std::lround(1000 * seconds_of(request.grace, "--grace"))));
  if (request.is_training) plan.run_folder = request.output_folder;
  const auto log_dir = find(request.log_dir, "--log-dir", "PET_LOG_DIR");
  plan.log_dir = log_dir ? fs::path(log_dir->text) : new_log_folder(request.output_folder);
  TITAN_CHECK(!plan.log_dir.empty(), config, "--log-dir is empty");
  plan.shown_ranks = shown_ranks(environment, plan.world_size());
  return plan;
}

std::vector<std::string> rank_environment(const LaunchPlan& plan, const Environment& environment,
                                          int local_rank, const HostPort& master, int attempt) {
  std::map<std::string, std::string> variables = environment.variables();
  // variables of an outer launcher describe this process, not the ranks
  for (const char* name : {"TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RUN_ID"})
    variables.erase(name);
  const int rank = plan.first_rank() + local_rank;
  const auto set = [&](const char* name, int value) { variables[name] = std::to_string(value); };
  set("RANK", rank);
  set("WORLD_SIZE", plan.world_size());
  set("LOCAL_RANK", local_rank);
  set("LOCAL_WORLD_SIZE", plan.ranks_here);
  set("GROUP_RANK", plan.node_rank);
  set("GROUP_WORLD_SIZE", plan.num_nodes);
  set("MASTER_PORT", master.port);
  set("TORCHELASTIC_RESTART_COUNT", attempt);
  set("TORCHELASTIC_MAX_RESTARTS", plan.max_restarts);
  variables["MASTER_ADDR"] = master.host;
  variables["TITAN_LAUNCHER"] = "titan";
  variables["TORCHELASTIC_ERROR_FILE"] = fs::absolute(plan.error_file_of(rank)).string();
  if (!environment.has("OMP_NUM_THREADS"))
    set("OMP_NUM_THREADS", std::max(1, num_cpus() / plan.ranks_here));
  std::vector<std::string> entries;
  for (const auto& [name, value] : variables) entries.push_back(name + "=" + value);
  return entries;
}

HeldPort hold_free_port() {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  const int yes = 1;
  TITAN_CHECK(socket.is_open() &&
                  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                  ::bind(socket.get(), generic, size) == 0 &&
                  ::getsockname(socket.get(), generic, &size) == 0,
              io, "cannot find a free port of 127.0.0.1: ", system_message(errno));
  return {std::move(socket), ntohs(address.sin_port)};
}

}  // namespace titan::launching
