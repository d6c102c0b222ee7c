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
#include <titan/shown_text.h>

#include "failure_streak.h"
#include "in_process_group.h"
#include "launch_plan.h"
#include "rank_group.h"
#include "rank_limit.h"
#include "run_state.h"

namespace titan::launching {
namespace {

using Text = std::optional<std::string>;

/// Flags as written; make_launch_plan checks them.
struct LaunchOptions {
  Text nproc, ranks, available, nnodes, node_rank, master, log_dir, max_restarts, same_failures,
      spares, program;
  bool in_process = false;
  std::string grace = "15";
};

/// "the same failure 3 times in a row ...: rank 1 at step 16 ended with exit code 1: error: ..."
std::string same_failure_text(const LaunchPlan& plan, int count, const std::string& failure) {
  return "the same failure " + std::to_string(count) +
         " times in a row without a newer checkpoint: " + failure +
         "; not restarted again (--same-failures " + std::to_string(plan.same_failures) + ")";
}

/// A wrong configuration or plugin would fail again.
bool is_worth_a_restart(const GroupEnd& end) {
  return end.has_failed && !end.was_stopped && end.exit_code != kExitConfigError &&
         end.exit_code != kExitPluginError;
}

struct Response {
  bool restarts = false;
  std::string text;  ///< "restart 1 of 3", "ended: ..."
};

/// What follows a failure. A failure that repeats changes the exit code and the message of `end`.
Response respond(const LaunchPlan& plan, int attempt, GroupEnd& end, const FailedAt& at,
                 FailureStreak& streak, Screen& screen) {
  if (plan.max_restarts == 0) return {false, "ended: --max-restarts is 0"};
  if (!is_worth_a_restart(end)) return {false, "ended: stopped, or a restart would fail again"};
  const int count = streak.add(end.first, at);
  if (plan.same_failures > 0 && count >= plan.same_failures) {
    end.failure = same_failure_text(plan, count, to_text(end.first, at));
    end.exit_code = kExitSameFailure;
    screen.errors.add(printable_lines("error: " + end.failure + "\n"));
    return {false, "ended: the same failure " + std::to_string(count) + " times in a row"};
  }
  const std::string last = std::to_string(plan.max_restarts);
  if (attempt == plan.max_restarts) return {false, "ended: all " + last + " restarts are used"};
  return {true, "restart " + std::to_string(attempt + 1) + " of " + last};
}

/// For titan report. A problem with the record must not prevent a restart.
void record(const LaunchPlan& plan, const GroupEnd& end, const FailedAt& at,
            const Response& response, Screen& screen) {
  if (end.exit_code == kExitConfigError || end.exit_code == kExitPluginError) return;
  const std::string problem = record_failure(plan, end.first, at, response.text);
  if (!problem.empty()) screen.say("the failure is not recorded for titan report: " + problem);
}

void announce(const LaunchPlan& plan, Screen& screen) {
  std::string text = std::to_string(plan.ranks_here) + (plan.ranks_here == 1 ? " rank" : " ranks");
  if (plan.num_nodes > 1)
    text += " here, " + std::to_string(plan.world_size()) + " on " +
            std::to_string(plan.num_nodes) + " nodes";
  screen.say(text + "; logs in " + plan.log_dir.string());
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
          .ranks = options_.ranks,
          .available = options_.available,
          .max_restarts = options_.max_restarts,
          .same_failures = options_.same_failures,
          .in_process = options_.in_process,
          .spares = options_.spares,
          .is_training = trains,
          .log_dir = options_.log_dir,
          .output_folder = context_.parts->dump_folder(job),
          .grace = options_.grace,
          .program = options_.program.value_or(context_.program.string()),
          .arguments = command};
}

int Launch::run() {
  const Environment environment = Environment::of_process();
  LaunchPlan plan = make_launch_plan(request(), environment);
  std::error_code error;
  std::filesystem::create_directories(plan.log_dir, error);
  TITAN_CHECK(!error, io, "cannot make the folder '", plan.log_dir.string(),
              "' for logs: ", error.message(), "; choose another with --log-dir");

  SignalInbox signals;
  Screen screen(STDOUT_FILENO, STDERR_FILENO);
  RankLimit limit(plan);
  FailureStreak streak;
  std::optional<InProcessGroup> staying;
  if (plan.in_process) staying.emplace(plan, environment, screen, signals);
  GroupEnd end;
  for (int attempt = 0;; ++attempt) {
    try {
      if (plan.is_elastic()) limit.choose(plan, streak, screen);
    } catch (const Error&) {
      screen.flush(signals.descriptor());
      throw;
    }
    if (attempt == 0) announce(plan, screen);
    end = staying ? staying->run(attempt)
                  : RankGroup(plan, environment, attempt, screen, signals).run();
    if (!end.has_failed) break;
    const FailedAt at = read_failed_at(plan.run_folder, end.first);
    const Response response = respond(plan, attempt, end, at, streak, screen);
    record(plan, end, at, response, screen);
    if (!response.restarts) break;
    screen.say(response.text + (staying ? ": in process" : ": restarting every rank"));
  }
  if (staying) staying->end();
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
      .option("ranks", &Options::ranks,
              "MIN:MAX instead of --nproc: each start takes the most ranks that the layout allows "
              "and that can start")
      .option(
          "available", &Options::available,
          "with --ranks: shell command that prints how many ranks can start; unset: a rank that "
          "fails first twice in a row without a newer checkpoint is left out")
      .option("nnodes", &Options::nnodes, "nodes; start this command once on each; unset: 1")
      .option("node_rank", &Options::node_rank, "which node this is, from 0")
      .option("master", &Options::master,
              "rendezvous address HOST:PORT on node 0; unset, on one node: a free port")
      .option("log_dir", &Options::log_dir,
              "folder for rank<r>.log; unset: a new one below launch_logs of the run's dump_folder")
      .option("grace", &Options::grace,
              "after a failure: seconds between SIGTERM and SIGKILL for the other ranks; with "
              "--in-process: until SIGKILL for ranks that do not leave the run")
      .option("max_restarts", &Options::max_restarts,
              "restart all ranks after a failure, at most N times; unset: 0")
      .option("same_failures", &Options::same_failures,
              "with --max-restarts: exit with 70 after N failures in a row with the same cause at "
              "the same step and no newer checkpoint; 0: never; unset: 3 for train, else 0")
      .option(
          "in_process", &Options::in_process,
          "with --max-restarts, for train on one node: ranks that are left after a failure build "
          "the run anew in their processes")
      .option(
          "spares", &Options::spares,
          "with --in-process: processes that wait to take the place of a lost rank; unset: 0, a "
          "new process is started then")
      .option("program", &Options::program,
              "start this instead of titan; its arguments follow the --");
}
