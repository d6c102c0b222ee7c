// titan sweep FILE: trains every combination of a grid or a list of overrides with every seed, side
// by side or as a Slurm array, and compares the cases.
#include <sys/file.h>

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>

#include <titan/command.h>
#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/files/flock.h>
#include <titan/plugin.h>
#include <titan/program/exit_codes.h>
#include <titan/program/quantity_text.h>
#include <titan/program/terminal.h>
#include <titan/program/text.h>
#include <titan/program/text_table.h>

#include "../common/side_runs.h"
#include "results.h"
#include "slurm_array.h"

namespace titan::commands {
namespace {

namespace fs = std::filesystem;
using State = SweepRun::State;

struct SweepOptions {
  bool dry_run = false, collect = false, slurm = false, submit = false, json = false;
};

/// Keeps a second sweep out of the folder for its lifetime.
Descriptor lock_folder(const fs::path& folder) {
  std::error_code error;
  for (const char* inner : {"runs", "logs"}) fs::create_directories(folder / inner, error);
  const fs::path path = folder / "sweep.lock";
  Descriptor lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  TITAN_CHECK(lock.is_open(), io, "cannot write the sweep's folder '", folder.string(),
              "': ", system_message(errno), "; choose another with 'folder'");
  TITAN_CHECK(try_flock(lock.get()) || errno != EWOULDBLOCK, io, "another titan sweep works in '",
              folder.string(), "'; wait until it ends");
  return lock;
}

class Sweep final : public Command {
 public:
  static constexpr CommandWords kWords{"FILE", 1, 1};

  Sweep(const SweepOptions& options, const CommandContext& context)
      : options_(options), program_(context.program), file_(context.words.front()) {
    const int num_modes = options_.dry_run + options_.collect + (options_.slurm || options_.submit);
    TITAN_CHECK(num_modes <= 1, config,
                "--dry-run, --collect and --slurm (--submit) exclude each other");
  }

  int run() override {
    sweep_ = read_sweep_file(file_);
    std::optional<Descriptor> lock;
    if (!options_.dry_run && !options_.collect) lock = lock_folder(sweep_.folder);
    runs_ = plan_runs(sweep_, program_, signals_);
    if (options_.dry_run) return list();
    if (options_.collect) return finish(std::nullopt);
    if (options_.slurm || options_.submit) return write_array();
    return finish(train());
  }

 private:
  std::vector<SweepRun> unfinished() const {
    std::vector<SweepRun> left;
    for (const SweepRun& run : runs_)
      if (run.state != State::finished) left.push_back(run);
    return left;
  }

  int list() const {
    if (options_.json) {
      Value::List list;
      for (const SweepRun& run : runs_) {
        Value::List words;
        for (std::string& word : words_of(run, sweep_.ranks)) words.push_back(std::move(word));
        list.push_back(Value::map({{"case", sweep_.cases[run.case_index].name},
                                   {"seed", run.seed},
                                   {"state", to_string(run.state)},
                                   {"last_step", run.last_step},
                                   {"config_hash", run.hash},
                                   {"folder", run.folder.string()},
                                   {"arguments", Value(std::move(words))}}));
      }
      print_json(to_json(Value(std::move(list)), 2) + "\n");
      return kExitDone;
    }
    std::vector<TextRow> rows{{"case", "seed", "state", "step", "folder"}};
    for (const SweepRun& run : runs_)
      rows.push_back({sweep_.cases[run.case_index].name, std::to_string(run.seed),
                      to_string(run.state), std::to_string(run.last_step), run.folder.string()});
    print(text_table(std::move(rows)));
    print(std::to_string(runs_.size()) + " runs, " + std::to_string(unfinished().size()) +
          " to train; all configurations are valid; nothing was started\n");
    return kExitDone;
  }

  /// Trains what has not finished. Returns the signal that stopped it.
  std::optional<int> train() {
    const std::vector<SweepRun> left = unfinished();
    const auto parallel = static_cast<size_t>(std::max<int64_t>(1, sweep_.parallel));
    const auto at_a_time =
        static_cast<int64_t>(std::max<size_t>(1, std::min(parallel, left.size())));
    const int64_t num_cores = std::max(1u, std::thread::hardware_concurrency());
    const int64_t threads = sweep_.threads > 0
                                ? sweep_.threads
                                : std::max<int64_t>(1, num_cores / (at_a_time * sweep_.ranks));
    std::vector<SideRun> started;
    for (const SweepRun& run : left)
      started.push_back({.program = program_.string(),
                         .arguments = words_of(run, sweep_.ranks),
                         .environment = {{"OMP_NUM_THREADS", std::to_string(threads)}},
                         .log = run.log});
    if (!left.empty())
      say(std::to_string(left.size()) + " of " + std::to_string(runs_.size()) + " runs to train, " +
          std::to_string(at_a_time) + " at a time, " + std::to_string(threads) +
          (threads == 1 ? " thread" : " threads") + " per rank; logs in " +
          (sweep_.folder / "logs").string());
    size_t num_ended = 0;
    const SideRunsEnd end = run_side_by_side(
        started, parallel, signals_,
        {.started =
             [&](size_t i) {
               say((left[i].last_step > 0 ? "starting again: " : "starting: ") + left[i].label);
             },
         .ended =
             [&](size_t i, const SideRunEnd& run) {
               say("[" + std::to_string(++num_ended) + "/" + std::to_string(left.size()) + "] " +
                   left[i].label + " " + how_it_ended(run.status) + " after " +
                   duration_text(run.seconds) +
                   (run.status == 0 ? "" : "; see " + left[i].log.string()));
             }});
    for (SweepRun& run : runs_) look_up(run);
    return end.stopped_by;
  }

  /// Writes and prints the results.
  int finish(std::optional<int> stopped_by) {
    const SweepResult result = collect(sweep_, runs_);
    write_results(result, sweep_.folder);
    if (options_.json)
      print_json(to_json(to_value(result), 2) + "\n");
    else
      print(to_markdown(result));
    const size_t num_left = unfinished().size();
    say("results in " + (sweep_.folder / "sweep.{md,csv,json,svg}").string());
    if (stopped_by) {
      say("stopped by " + signal_name(*stopped_by) + " with " + std::to_string(num_left) +
          " runs left; run the same command again to resume");
      const bool is_notice = *stopped_by == SIGTERM || *stopped_by == SIGUSR1;
      return is_notice ? int{kExitRequeue} : 128 + *stopped_by;
    }
    if (num_left == 0) return kExitDone;
    print_error(std::to_string(num_left) + " of " + std::to_string(runs_.size()) +
                " runs have not finished; run the same command again to train them");
    return kExitRuntimeError;
  }

  int write_array() {
    const std::vector<SweepRun> left = unfinished();
    const fs::path script = sweep_.folder / "sweep.sbatch";
    write_text_atomically(script, slurm_array_script(sweep_, left, program_, fs::current_path()));
    say("wrote " + script.string() + ": an array of " + std::to_string(left.size()) + " runs");
    const std::string after = "after its end: titan sweep " + file_.string() + " --collect";
    if (!options_.submit) {
      say("submit it: sbatch " + script.string() + "; " + after);
      return kExitDone;
    }
    const SideRunsEnd end = run_side_by_side(
        {{.program = "/usr/bin/env", .arguments = {"sbatch", "--parsable", script.string()}}}, 1,
        signals_);
    const SideRunEnd& sbatch = end.runs.front();
    TITAN_CHECK(sbatch.status == 0, io, "sbatch ", how_it_ended(sbatch.status), ": ",
                trimmed(sbatch.errors), "; the script is ", script.string());
    print(std::string(trimmed(sbatch.output)) + "\n");
    say("submitted as the job above; " + after);
    return kExitDone;
  }

  static void say(const std::string& line) { print_to_errors("[sweep] " + line + "\n"); }

  SweepOptions options_;
  fs::path program_, file_;
  SignalInbox signals_;
  SweepFile sweep_;
  std::vector<SweepRun> runs_;
};

}  // namespace
}  // namespace titan::commands

TITAN_PLUGIN(plugin) {
  using titan::commands::Sweep;
  using titan::commands::SweepOptions;
  plugin.add<Sweep>("sweep", "train all combinations of overrides and seeds, and compare them")
      .option("dry_run", &SweepOptions::dry_run, "check and list the runs; start nothing")
      .option("collect", &SweepOptions::collect, "only write the results of what has finished")
      .option("slurm", &SweepOptions::slurm,
              "write sweep.sbatch, a Slurm array, instead of training")
      .option("submit", &SweepOptions::submit, "as --slurm, and give the script to sbatch")
      .option("json", &SweepOptions::json, "print JSON");
}
