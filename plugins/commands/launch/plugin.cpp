// `titan launch --nproc N -- train|generate ...`: starts N ranks of a command on this node and
// waits until all have exited.
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <titan/command.h>
#include <titan/error.h>
#include <titan/job_parts.h>
#include <titan/plugin.h>
#include <titan/program/error_file.h>
#include <titan/program/exit_codes.h>

#include "launch_plan.h"
#include "rank_group.h"

namespace titan::launching {
namespace {

using Text = std::optional<std::string>;

/// Flags as written; make_launch_plan checks them.
struct LaunchOptions {
  Text nproc, nnodes, node_rank, master, log_dir, max_restarts, program;
  std::string grace = "15";
};

void announce(const LaunchPlan& plan, Screen& screen) {
  std::string text = std::to_string(plan.ranks_here) + (plan.ranks_here == 1 ? " rank" : " ranks");
  if (plan.num_nodes > 1)
    text += " here, " + std::to_string(plan.world_size()) + " on " +
            std::to_string(plan.num_nodes) + " nodes";
  screen.say(text + "; logs in " + plan.log_dir.string());
}

/// A wrong configuration or plugin would fail again.
bool is_worth_a_restart(const GroupEnd& end) {
  return end.has_failed && !end.was_stopped && end.exit_code != kExitConfigError &&
         end.exit_code != kExitPluginError;
}

class Launch final : public Command {
 public:
  static constexpr CommandWords kWords{
      .usage = "train|generate ...", .most = SIZE_MAX, .takes_command = true};

  Launch(const LaunchOptions& options, CommandContext context)
      : options_(options), context_(std::move(context)) {}
  int run() override;

 private:
  LaunchRequest request() const;

  LaunchOptions options_;
  CommandContext context_;
};

LaunchRequest Launch::request() const {
  const std::vector<std::string>& command = context_.words;
  TITAN_CHECK(options_.program || !command.empty(), config,
              "there is nothing to start: put a command of titan after '--'; see: titan launch "
              "--help");
  TITAN_CHECK(options_.program || command.front() != "launch", config,
              "titan launch cannot start titan launch; put a command that runs on many ranks, such "
              "as 'train', after '--'");
  const bool trains = !options_.program && command.front() == "train";
  const std::vector<std::string> job(command.begin() + (trains ? 1 : 0),
                                     trains ? command.end() : command.begin());
  return {.nproc = options_.nproc,
          .nnodes = options_.nnodes,
          .node_rank = options_.node_rank,
          .master = options_.master,
          .max_restarts = options_.max_restarts,
          .log_dir = options_.log_dir,
          .output_folder = context_.parts->dump_folder(job),
          .grace = options_.grace,
          .program = options_.program.value_or(context_.program.string()),
          .arguments = command};
}

int Launch::run() {
  const Environment environment = Environment::of_process();
  const LaunchPlan plan = make_launch_plan(request(), environment);
  std::error_code error;
  std::filesystem::create_directories(plan.log_dir, error);
  TITAN_CHECK(!error, io, "cannot make the folder '", plan.log_dir.string(),
              "' for logs: ", error.message(), "; choose another with --log-dir");

  SignalInbox signals;
  Screen screen(STDOUT_FILENO, STDERR_FILENO);
  announce(plan, screen);
  GroupEnd end;
  for (int attempt = 0;; ++attempt) {
    end = RankGroup(plan, environment, attempt, screen, signals).run();
    if (attempt == plan.max_restarts || !is_worth_a_restart(end)) break;
    screen.say("restart " + std::to_string(attempt + 1) + " of " +
               std::to_string(plan.max_restarts) + ": restarting every rank");
  }
  if (end.has_failed)
    write_error_file(end.failure, "titan launch, node " + std::to_string(plan.node_rank) + " of " +
                                      std::to_string(plan.num_nodes));
  while (signals.next()) {
  }
  screen.flush(signals.descriptor());
  return end.exit_code;
}

}  // namespace
}  // namespace titan::launching

TITAN_PLUGIN(plugin) {
  using Options = titan::launching::LaunchOptions;
  plugin.add<titan::launching::Launch>("launch", "start N ranks on this machine and supervise them")
      .option("nproc", &Options::nproc,
              "ranks on this node: a number, 'cpu', 'gpu' (one per visible GPU) or 'auto'")
      .option("nnodes", &Options::nnodes, "nodes; start this command once on each; unset: 1")
      .option("node_rank", &Options::node_rank, "which node this is, from 0")
      .option("master", &Options::master,
              "rendezvous address HOST:PORT on node 0; unset, on one node: a free port")
      .option("log_dir", &Options::log_dir,
              "folder for rank<r>.log; unset: a new one below launch_logs of the run's dump_folder")
      .option("grace", &Options::grace,
              "after a failure: seconds between SIGTERM and SIGKILL for the other ranks")
      .option("max_restarts", &Options::max_restarts,
              "restart all ranks after a failure, at most N times; unset: 0")
      .option("program", &Options::program,
              "start this instead of titan; its arguments follow the --");
}
