// titan launch --nproc N -- train|generate ...: starts N ranks of this program on this node and
// sees them to their end.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/arguments.h"
#include "core/commands/command.h"
#include "core/config/job_sections.h"
#include "core/config/resolve.h"
#include "core/launch/launch_plan.h"
#include "core/launch/rank_group.h"
#include "core/runtime/error_file.h"

namespace titan::core {
namespace {

constexpr char kLaunchUsage[] =
    "titan launch --nproc N [--nnodes K --node-rank R --master HOST:PORT] [OPTION]... -- "
    "train|generate ...";

boost::program_options::options_description launch_flags() {
  namespace po = boost::program_options;
  po::options_description flags;
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  flags.add_options()("nproc", text("N"),
                      "ranks on this node: a number, 'cpu', 'gpu' (one per visible GPU) or 'auto'")(
      "nnodes", text("K"), "nodes; start this command once on each (default 1)")(
      "node-rank", text("R"), "which node this is, from 0")(
      "master", text("HOST:PORT"),
      "where the ranks meet, on node 0 (default on one node: a free port)")(
      "log-dir", text("DIR"),
      "folder for rank<r>.log (default: a new one below launch_logs of the run's dump_folder)")(
      "grace", text("SECONDS")->default_value("15"),
      "after a failure: from SIGTERM to SIGKILL for the other ranks")(
      "max-restarts", text("M"),
      "start the whole group anew after a failure, at most so often (default 0)")(
      "program", text("PATH"), "start this instead of titan; its arguments follow the --");
  return flags;
}

std::string path_of_this_program() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

/// Where the run that is started writes. What is wrong with its configuration it says itself.
std::string output_folder_of(const std::vector<std::string>& command) {
  try {
    if (!command.empty() && command.front() == "train")
      return dump_folder_of(read_sources({command.begin() + 1, command.end()}));
  } catch (const Error&) {
  }
  return JobSection{}.dump_folder;
}

/// Flags stand before the first "--", what is started after it.
LaunchRequest request_of(const Arguments& parsed, std::vector<std::string> command) {
  const auto get = [&](const char* flag) {
    return parsed.flags.count(flag) ? std::optional(parsed.flags[flag].as<std::string>())
                                    : std::nullopt;
  };
  const auto program = get("program");
  TITAN_CHECK(
      program || !command.empty(), config,
      "there is nothing to start: put a command of titan behind '--'; usage: ", kLaunchUsage);
  TITAN_CHECK(program || command.front() != "launch", config,
              "titan launch cannot start titan launch; put a command that runs on many ranks, such "
              "as 'train', behind '--'");
  const std::string output_folder = program ? JobSection{}.dump_folder : output_folder_of(command);
  return {.nproc = get("nproc"),
          .nnodes = get("nnodes"),
          .node_rank = get("node-rank"),
          .master = get("master"),
          .max_restarts = get("max-restarts"),
          .log_dir = get("log-dir"),
          .output_folder = output_folder,
          .grace = *get("grace"),
          .program = program.value_or(path_of_this_program()),
          .arguments = std::move(command)};
}

void announce(const LaunchPlan& plan, Screen& screen) {
  std::string text = std::to_string(plan.ranks_here) + (plan.ranks_here == 1 ? " rank" : " ranks");
  if (plan.num_nodes > 1)
    text += " here, " + std::to_string(plan.world_size()) + " on " +
            std::to_string(plan.num_nodes) + " nodes";
  screen.say(text + "; logs in " + plan.log_dir.string());
}

/// A wrong configuration or plugin is as wrong the next time.
bool is_worth_a_restart(const GroupEnd& end) {
  return end.has_failed && !end.was_stopped && end.exit_code != kExitConfigError &&
         end.exit_code != kExitPluginError;
}

}  // namespace

int run_launch(const std::vector<std::string>& arguments) {
  const auto divider = std::find(arguments.begin(), arguments.end(), "--");
  const std::vector<std::string> own(arguments.begin(), divider);
  const Arguments parsed = parse_arguments(kLaunchUsage, launch_flags(), own, 0, SIZE_MAX);
  if (parsed.wants_help) return kExitDone;
  TITAN_CHECK(parsed.words.empty(), config, "'", parsed.words.front(),
              "' is no flag of titan launch; what is to be started stands behind '--'; usage: ",
              kLaunchUsage);
  std::vector<std::string> command(divider == arguments.end() ? divider : divider + 1,
                                   arguments.end());
  const Environment environment = Environment::of_process();
  const LaunchPlan plan = make_launch_plan(request_of(parsed, std::move(command)), environment);
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
               std::to_string(plan.max_restarts) + ": every rank starts anew");
  }
  if (end.has_failed)
    write_error_file(end.failure, "titan launch, node " + std::to_string(plan.node_rank) + " of " +
                                      std::to_string(plan.num_nodes));
  while (signals.next()) {
  }
  screen.flush(signals.descriptor());
  return end.exit_code;
}

}  // namespace titan::core
