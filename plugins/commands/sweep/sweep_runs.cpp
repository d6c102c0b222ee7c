#include "sweep_runs.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <thread>

#include <titan/error.h>
#include <titan/files/hash.h>
#include <titan/program/exit_codes.h>
#include <titan/program/text.h>
#include <titan/runs/event.h>
#include <titan/runs/series.h>
#include <titan/suggest.h>

#include "../common/run_config.h"
#include "../common/shell_text.h"
#include "../common/side_runs.h"

namespace titan::commands {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHashDigits = 12;
constexpr size_t kMostNameBytes = 80;

std::vector<std::string> flags_of(const SweepFile& sweep, const SweepCase& one, int64_t seed) {
  std::vector<std::string> flags;
  if (!sweep.config.empty()) flags.push_back("--job.config_file=" + sweep.config.string());
  for (const std::vector<Override>* list : {&sweep.fixed, &one.overrides})
    for (const auto& [key, value] : *list) {
      const bool is_replaced =
          list == &sweep.fixed &&
          std::any_of(one.overrides.begin(), one.overrides.end(),
                      [&key = key](const Override& other) { return other.first == key; });
      if (!is_replaced) flags.insert(flags.end(), {"--set", key + "=" + toml_text(value)});
    }
  flags.push_back("--debug.seed=" + std::to_string(seed));
  return flags;
}

/// The folder is named by the hash, so it is no part of it.
std::string hash_of(std::map<std::string, std::string> config) {
  config.erase("job.dump_folder");
  std::string text;
  for (const auto& [key, value] : config) text += key + "=" + value + "\n";
  return hash_hex(text);
}

/// A case's name as part of a file name: "lr=0.01_beta1=0.9".
std::string file_name_of(const std::string& name) {
  std::string result;
  for (const char c : name) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) ||
                          std::string_view("=+-.").find(c) != std::string_view::npos;
    if (is_plain)
      result += c;
    else if (c == ',' || c == '/' || c == '_')
      result += '_';
    if (result.size() == kMostNameBytes) break;
  }
  return result;
}

/// The problems of all runs; equal reports once.
std::string joined_reports(const std::vector<SweepRun>& runs,
                           const std::vector<SideRunEnd>& checks) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reports;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (checks[i].status == 0) continue;
    std::string said(trimmed(checks[i].errors));
    if (said.empty()) said = "titan train --dry-run " + how_it_ended(checks[i].status);
    const auto same = std::find_if(reports.begin(), reports.end(),
                                   [&](const auto& report) { return report.first == said; });
    if (same == reports.end())
      reports.push_back({said, {runs[i].label}});
    else
      same->second.push_back(runs[i].label);
  }
  std::string text;
  for (const auto& [said, labels] : reports) {
    text += "\n  " + labels.front();
    if (labels.size() > 1) text += ", and " + std::to_string(labels.size() - 1) + " more";
    text += ":\n" + said;
  }
  return text;
}

void require_valid(const std::vector<SweepRun>& runs, const SideRunsEnd& checks) {
  if (checks.stopped_by)
    fail(ErrorKind::io, "stopped by ", signal_name(*checks.stopped_by),
         " while the runs were checked; nothing was started");
  const auto num_wrong = std::count_if(checks.runs.begin(), checks.runs.end(),
                                       [](const SideRunEnd& end) { return end.status != 0; });
  if (num_wrong == 0) return;
  const bool are_plugins =
      std::all_of(checks.runs.begin(), checks.runs.end(), [](const SideRunEnd& end) {
        const int code = exit_code_of(end.status);
        return code == kExitDone || code == kExitPluginError;
      });
  fail(are_plugins ? ErrorKind::plugin : ErrorKind::config, num_wrong, " of ", runs.size(),
       " runs cannot start; nothing was started", joined_reports(runs, checks.runs));
}

void require_different(const std::vector<SweepRun>& runs) {
  std::map<std::string, const SweepRun*> by_hash;
  for (const SweepRun& run : runs) {
    const auto [other, is_new] = by_hash.emplace(run.hash, &run);
    TITAN_CHECK(is_new, config, "two runs of the sweep resolve to the same configuration: '",
                other->second->label, "' and '", run.label, "'; remove one of the cases");
  }
}

}  // namespace

const char* to_string(SweepRun::State state) {
  switch (state) {
    case SweepRun::State::fresh:
      return "new";
    case SweepRun::State::partial:
      return "partial";
    case SweepRun::State::failed:
      return "failed";
    case SweepRun::State::finished:
      return "finished";
  }
  return "";
}

std::vector<SweepRun> plan_runs(const SweepFile& sweep, const fs::path& program,
                                SignalInbox& signals) {
  std::vector<SweepRun> runs;
  std::vector<SideRun> checks;
  for (size_t i = 0; i < sweep.cases.size(); ++i)
    for (const int64_t seed : sweep.seeds) {
      const SweepCase& one = sweep.cases[i];
      SweepRun run{.case_index = i,
                   .seed = seed,
                   .label = one.name + ", seed " + std::to_string(seed),
                   .flags = flags_of(sweep, one, seed)};
      std::vector<std::string> words{"train", "--dry-run", "--world-size",
                                     std::to_string(sweep.ranks)};
      words.insert(words.end(), run.flags.begin(), run.flags.end());
      words.push_back("--job.dump_folder=" + sweep.folder.string());
      checks.push_back({.program = program.string(),
                        .arguments = words,
                        .environment = {{"OMP_NUM_THREADS", "1"}}});
      runs.push_back(std::move(run));
    }
  const size_t num_cores = std::max(1u, std::thread::hardware_concurrency());
  const SideRunsEnd ends = run_side_by_side(checks, num_cores, signals);
  require_valid(runs, ends);
  for (size_t i = 0; i < runs.size(); ++i) {
    SweepRun& run = runs[i];
    run.hash = hash_of(parse_run_config("the resolved configuration", ends.runs[i].output));
    const std::string name = file_name_of(sweep.cases[run.case_index].name) + "-seed" +
                             std::to_string(run.seed) + "-" + run.hash.substr(0, kHashDigits);
    run.folder = sweep.folder / "runs" / name;
    run.log = sweep.folder / "logs" / (name + ".log");
    look_up(run);
  }
  require_different(runs);
  return runs;
}

void look_up(SweepRun& run) {
  run.state = SweepRun::State::fresh;
  run.last_step = 0;
  if (!fs::exists(run.folder / "history.jsonl")) return;
  bool has_ended = false;
  RunEvent::Outcome outcome = RunEvent::Outcome::failed;
  for (const RunEvent& event : read_history(run.folder).events) {
    if (event.kind == RunEvent::Kind::start) has_ended = false;
    if (event.kind == RunEvent::Kind::steps) run.last_step = event.to;
    if (event.kind != RunEvent::Kind::end) continue;
    has_ended = true;
    outcome = event.outcome;
    run.last_step = event.step;
  }
  if (!has_ended || outcome == RunEvent::Outcome::stopped) {
    run.state = SweepRun::State::partial;
  } else if (outcome == RunEvent::Outcome::failed) {
    run.state = SweepRun::State::failed;
  } else {  // the record must be of this configuration
    const fs::path config = run.folder / "config.toml";
    const bool is_same = fs::exists(config) && hash_of(read_run_config(config)) == run.hash;
    run.state = is_same ? SweepRun::State::finished : SweepRun::State::failed;
  }
}

std::vector<std::string> words_of(const SweepRun& run, int64_t ranks) {
  std::vector<std::string> words;
  if (ranks > 1) words = {"launch", "--nproc", std::to_string(ranks), "--"};
  words.push_back("train");
  words.insert(words.end(), run.flags.begin(), run.flags.end());
  words.push_back("--job.dump_folder=" + run.folder.string());
  return words;
}

double score_of(const SweepRun& run, const SweepMetric& metric) {
  const Metrics metrics = read_metrics(run.folder);
  const auto found = metrics.series.find(metric.tag);
  if (found == metrics.series.end() || found->second.values.empty()) {
    std::vector<std::string> tags;
    for (const auto& [tag, series] : metrics.series) tags.push_back(tag);
    const std::string hint = did_you_mean(metric.tag, tags);
    fail(ErrorKind::config, "no line of '", (run.folder / "metrics.jsonl").string(), "' has '",
         metric.tag, "', the metric of the sweep", hint.empty() ? "" : "; " + hint);
  }
  const std::vector<double>& values = found->second.values;
  switch (metric.reduce) {
    case SweepMetric::Reduce::last:
      return values.back();
    case SweepMetric::Reduce::min:
      return *std::min_element(values.begin(), values.end());
    case SweepMetric::Reduce::max:
      return *std::max_element(values.begin(), values.end());
    case SweepMetric::Reduce::mean:
      break;
  }
  const std::vector<int64_t>& steps = found->second.steps;
  double sum = 0;
  int64_t count = 0;
  for (size_t i = 0; i < steps.size(); ++i)
    if (steps[i] > steps.back() - metric.last_steps) {
      sum += values[i];
      ++count;
    }
  return sum / static_cast<double>(count);
}

}  // namespace titan::commands
