#include "core/train/assembly/earlier_files.h"

#include <string>
#include <vector>

#include <titan/error.h>
#include <titan/log.h>
#include <titan/program/clock.h>
#include <titan/runs/event.h>
#include <titan/runs/history_writer.h>

namespace titan::core {
namespace {

namespace fs = std::filesystem;

bool is_results_file(const std::string& name) {
  const bool is_metrics = name.starts_with("metrics") && name.ends_with(".jsonl");
  return is_metrics || name == "history.jsonl" || name == "fingerprints.jsonl";
}

/// Whether `name` is a file or folder of a run that holds no results.
bool is_record(const std::string& name, const JobConfig& config) {
  for (const std::string& known :
       {std::string("config.toml"), std::string("status"), std::string("timeline"),
        std::string("tensor_trace"), config.comm.save_traces_folder,
        config.profiling.save_traces_folder, config.profiling.save_memory_snapshot_folder,
        config.job.save_config_file.value_or("config.toml")})
    if (name == known) return true;
  return name.starts_with("mlflow_run") && name.ends_with(".json");
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code unreadable;  // a missing folder has no entries
  for (fs::directory_iterator entry(folder, unreadable), end; !unreadable && entry != end;
       entry.increment(unreadable))
    entries.push_back(entry->path());
  return entries;
}

bool has_results(const std::vector<fs::path>& entries) {
  std::error_code ignored;
  for (const fs::path& entry : entries)
    if (is_results_file(entry.filename()) && fs::file_size(entry, ignored) > 0 && !ignored)
      return true;
  return false;
}

/// The start time of the last session of `history`, or the time of the last change of its folder.
double begin_of(const RunHistory& history, const fs::path& folder) {
  for (auto event = history.events.rbegin(); event != history.events.rend(); ++event)
    if (event->kind == RunEvent::Kind::start) return event->time;
  return wall_seconds(fs::last_write_time(folder));
}

fs::path free_folder(const fs::path& root, double time) {
  const std::string name = local_time_text(time, "%Y%m%d-%H%M%S");
  fs::path folder = root / name;
  for (int number = 2; fs::exists(folder); ++number)
    folder = root / (name + "-" + std::to_string(number));
  return folder;
}

}  // namespace

fs::path keep_earlier_files(const JobConfig& config, FolderStart start) {
  if (start == FolderStart::continuation) return {};
  const fs::path folder = config.job.dump_folder;
  const std::vector<fs::path> entries = entries_of(folder);
  if (!has_results(entries)) return {};
  try {
    const RunHistory history = read_history(folder);
    const bool moves = start == FolderStart::from_nothing &&
                       !continues_history(history.events, 0, config.resolved);
    const fs::path kept = free_folder(folder / "earlier", begin_of(history, folder));
    fs::create_directories(kept);
    for (const fs::path& entry : entries) {
      const std::string name = entry.filename();
      if (!is_results_file(name) && !is_record(name, config)) continue;
      if (moves)
        fs::rename(entry, kept / name);
      else if (fs::is_regular_file(entry))
        fs::copy_file(entry, kept / name);
    }
    log::info("the files of an earlier start in '" + folder.string() + "' are " +
              (moves ? "now" : "also") + " in '" + kept.string() + "'");
    return kept;
  } catch (const fs::filesystem_error& e) {
    fail(ErrorKind::io, "cannot keep the results of the run that '", folder.string(),
         "' (job.dump_folder) holds: ", e.what(), "; choose another job.dump_folder");
  }
}

}  // namespace titan::core
