#include "bench_run.h"

#include <stdlib.h>

#include <algorithm>

#include <titan/error.h>
#include <titan/program/environment.h>
#include <titan/program/exit_codes.h>

namespace titan::commands {

std::vector<std::string> environment_with(const std::map<std::string, std::string>& more) {
  const Environment here = Environment::of_process();
  std::vector<std::string> entries;
  for (const auto& [name, value] : here.variables())
    if (!more.count(name)) entries.push_back(name + "=" + value);
  for (const auto& [name, value] : more) entries.push_back(name + "=" + value);
  return entries;
}

namespace {

constexpr const char* kMetricsFile = "jsonl";  // the logger whose file is read

namespace fs = std::filesystem;

/// The end of a program's output.
std::string last_lines(const std::string& text) {
  constexpr size_t kMost = 4000;
  if (text.size() <= kMost) return text;
  const size_t begin = text.find('\n', text.size() - kMost);
  return text.substr(begin == text.npos ? text.size() - kMost : begin + 1);
}

/// `is_titan`: only Titan's exit codes distinguish configuration errors.
void require_success(const MeasuredRun& run, const std::string& command, bool is_titan) {
  if (run.status == 0) return;
  const std::string said = run.errors.empty() ? run.output : run.errors;
  const int code = is_titan ? exit_code_of(run.status) : int{kExitRuntimeError};
  fail(code == kExitConfigError   ? ErrorKind::config
       : code == kExitPluginError ? ErrorKind::plugin
                                  : ErrorKind::io,
       "'", command, "' ", how_it_ended(run.status), ":\n", last_lines(said));
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

BenchFigures run_command(const BenchSide& side, const BenchSteps& steps, SignalInbox& signals) {
  const MeasuredRun run = run_measured(
      {.program = "/bin/sh",
       .arguments = {"-c", side.command},
       .environment = environment_with({{"TITAN_BENCH_WARMUP", std::to_string(steps.warmup)},
                                        {"TITAN_BENCH_STEPS", std::to_string(steps.measured)}})},
      std::nullopt, signals);
  require_success(run, side.command, false);
  BenchFigures figures = figures_of_other(run, steps);
  figures.command = side.command;
  return figures;
}

}  // namespace

BenchFolder::BenchFolder(const std::optional<fs::path>& keep) : is_kept_(keep.has_value()) {
  if (keep) {
    std::error_code error;
    fs::create_directories(*keep, error);
    TITAN_CHECK(!error, io, "cannot make the folder '", keep->string(), "': ", error.message());
    path_ = fs::absolute(*keep);
    return;
  }
  std::string name = (fs::temp_directory_path() / "titan_bench_XXXXXX").string();
  TITAN_CHECK(::mkdtemp(name.data()), io, "cannot make a folder '", name,
              "': ", system_message(errno));
  path_ = name;
}

BenchFolder::~BenchFolder() {
  std::error_code ignored;
  if (!is_kept_) fs::remove_all(path_, ignored);
}

std::vector<std::string> words_of(const BenchSide& side, const BenchSteps& steps,
                                  const fs::path& folder) {
  std::vector<std::string> words;
  if (!side.num_ranks.empty())
    words = {"launch", "--nproc", side.num_ranks, "--log-dir", (folder / "logs").string(), "--"};
  words.push_back("train");
  words.insert(words.end(), side.arguments.begin(), side.arguments.end());
  for (const auto& [key, value] : std::vector<std::pair<const char*, std::string>>{
           {"job.dump_folder", (folder / "run").string()},
           {"training.steps", std::to_string(steps.all())},
           {"metrics.log_freq", std::to_string(steps.interval)},
           {"metrics.loggers", kMetricsFile},
           {"metrics.enable_tensorboard", "false"},
           {"metrics.enable_wandb", "false"},
           {"checkpoint.enable", "false"},
           {"validation.enable", "false"},
           {"profiling.enable_profiling", "false"},
           {"profiling.enable_memory_snapshot", "false"}})
    words.push_back(std::string("--") + key + "=" + value);
  return words;
}

BenchFigures run_once(const BenchSide& side, const BenchSteps& steps, const fs::path& folder,
                      SignalInbox& signals) {
  if (!side.command.empty()) return run_command(side, steps, signals);
  fs::create_directories(folder / "run");
  const std::vector<std::string> words = words_of(side, steps, folder);
  const MeasuredRun run = run_measured({side.program, words, environment_with({})},
                                       folder / "run/metrics.jsonl", signals);
  std::vector<std::string> shown = {"titan"};
  if (!side.num_ranks.empty()) shown = {"titan", "launch", "--nproc", side.num_ranks, "--"};
  shown.push_back("train");
  shown.insert(shown.end(), side.arguments.begin(), side.arguments.end());
  require_success(run, joined(shown), true);
  BenchFigures figures = figures_of_titan(folder / "run", run, steps);
  figures.command = joined(shown);
  return figures;
}

std::string mistakes_in(const BenchSide& side, const BenchSteps& steps, const fs::path& folder,
                        SignalInbox& signals) {
  if (!side.command.empty()) return {};
  std::vector<std::string> words = words_of(side, steps, folder);
  words.erase(words.begin(), std::find(words.begin(), words.end(), "train"));
  words.push_back("--dry-run");
  if (!side.num_ranks.empty() &&
      std::all_of(side.num_ranks.begin(), side.num_ranks.end(), [](char c) { return isdigit(c); }))
    words.insert(words.end(), {"--world-size", side.num_ranks});
  const MeasuredRun run =
      run_measured({side.program, words, environment_with({})}, std::nullopt, signals);
  return run.status == 0 ? "" : run.errors;
}

}  // namespace titan::commands
