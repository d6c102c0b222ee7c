#include "run_folder.h"

#include <algorithm>

#include <titan/checkpoints/checkpoint_folder.h>
#include <titan/checkpoints/manifest.h>
#include <titan/error.h>
#include <titan/files/file.h>

#include "../common/run_config.h"

namespace titan::commands {
namespace {

namespace fs = std::filesystem;

/// Runs `read`; an Error becomes a problem of the run.
template <class Read>
void attempt(RunFolder& run, const char* what, Read&& read) {
  try {
    read();
  } catch (const Error& e) {
    run.problems.push_back(std::string(what) + " cannot be shown: " + e.message());
  }
}

void flatten(const Value& value, const std::string& path, RunFolder& run) {
  if (!value.is_map()) {
    run.config[path] = to_json(value);
    return;
  }
  for (const auto& [name, member] : value.as_map())
    flatten(member, path.empty() ? name : path + "." + name, run);
}

/// From config.toml, else from the last start in the history.
void read_config(RunFolder& run) {
  const fs::path file = run.path / "config.toml";
  if (fs::exists(file)) {
    try {
      run.config = read_run_config(file);
      return;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
      run.problems.push_back(
          "config.toml is not valid TOML: showing the configuration from the history");
    }
  }
  for (const RunEvent& event : run.history.events)
    if (event.kind == RunEvent::Kind::start)
      if (const Value* config = event.details.find("config"); config && config->is_map()) {
        run.config.clear();
        flatten(*config, "", run);
      }
}

/// The run's checkpoint folder: checkpoint.folder within its folder.
fs::path checkpoint_folder(const RunFolder& run) {
  const auto folder = run.config.find("checkpoint.folder");
  if (folder == run.config.end()) return run.path / "checkpoint";
  const Value name = parse_json(folder->second);
  return run.path / (name.is_string() ? name.as_string() : "checkpoint");
}

SavedStep saved_step(const CheckpointStep& found) {
  SavedStep saved{.step = found.step, .contents = ""};
  if (found.marker == Marker::none) {
    saved.contents = "not complete";
    return saved;
  }
  saved.is_complete = true;
  if (found.marker != Marker::manifest) {
    saved.contents = "weights, in another format";
    return saved;
  }
  try {
    const CheckpointManifest manifest = read_checkpoint_manifest(found.path);
    saved.contents = manifest.contents == Contents::training ? "training" : "weights";
    saved.time = manifest.time;
    saved.num_files = static_cast<int64_t>(manifest.files.size());
    for (const ManifestFile& file : manifest.files) saved.bytes += file.bytes;
  } catch (const Error& e) {
    saved.is_complete = false;
    saved.contents = e.message();
  }
  return saved;
}

void count_unreadable(RunFolder& run, const std::string& file, int64_t count) {
  if (count > 0)
    run.problems.push_back(file + " has " + std::to_string(count) +
                           (count == 1 ? " malformed line" : " malformed lines"));
}

}  // namespace

RunFolder read_run_folder(const fs::path& path) {
  RunFolder run;
  TITAN_CHECK(fs::is_directory(path), io, "there is no folder '", path.string(),
              "'; a run's folder is its job.dump_folder");
  run.path = path;
  const fs::path whole = fs::absolute(path).lexically_normal();
  run.name =
      whole.has_filename() ? whole.filename().string() : whole.parent_path().filename().string();
  attempt(run, "the history", [&] { run.history = read_history(path); });
  attempt(run, "the metrics", [&] { run.metrics = read_metrics(path); });
  attempt(run, "the configuration", [&] { read_config(run); });
  attempt(run, "the checkpoints", [&] {
    for (const CheckpointStep& step : list_steps(checkpoint_folder(run)))
      run.checkpoints.push_back(saved_step(step));
  });
  attempt(run, "the timelines", [&] { run.timelines = read_timelines(path); });
  run.statuses = read_rank_statuses(path);
  attempt(run, "the failures", [&] {
    FailureRecords failures = read_failures(path);
    run.failures = std::move(failures.records);
    count_unreadable(run, kFailuresName, failures.num_unreadable);
  });
  count_unreadable(run, "history.jsonl", run.history.num_unreadable);
  count_unreadable(run, "metrics.jsonl", run.metrics.num_unreadable);
  for (const RankTimeline& timeline : run.timelines)
    count_unreadable(run, "timeline/rank_" + std::to_string(timeline.rank) + ".jsonl",
                     timeline.num_unreadable);
  for (const std::string& problem : run.statuses.unreadable)
    run.problems.push_back("status/" + problem);
  TITAN_CHECK(!run.history.events.empty() || !run.metrics.series.empty() || !run.config.empty() ||
                  !run.statuses.ranks.empty(),
              io, "no run has written into '", path.string(),
              "': history.jsonl, metrics.jsonl, config.toml and status are missing or empty");
  return run;
}

}  // namespace titan::commands
