#include "snapshot.h"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <sstream>

#include <titan/error.h>
#include <titan/files/checksum.h>
#include <titan/files/file.h>
#include <titan/program/environment.h>
#include <titan/program/exit_codes.h>
#include <titan/program/installation.h>
#include <titan/program/text.h>

#include "../common/run_config.h"
#include "../common/side_runs.h"

namespace titan::commands {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostHashedBytes = int64_t{1} << 30;  // of one input

/// Runs a program and returns its standard output; its failure is this program's.
std::string output_of(const SideRun& run, SignalInbox& signals) {
  const SideRunsEnd end = run_side_by_side({run}, 1, signals);
  const SideRunEnd& only = end.runs.front();
  if (end.stopped_by)
    fail(ErrorKind::io, "stopped by ", signal_name(*end.stopped_by), "; nothing was submitted");
  if (only.status == 0) return only.output;
  const int code = exit_code_of(only.status);
  fail(code == kExitConfigError   ? ErrorKind::config
       : code == kExitPluginError ? ErrorKind::plugin
                                  : ErrorKind::io,
       "the job cannot start; nothing was submitted\n", trimmed(only.errors));
}

void copy_to(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  fs::copy_file(from, to, error);
  TITAN_CHECK(!error, io, "cannot copy '", from.string(), "' to '", to.string(),
              "': ", error.message());
}

/// The files in the last column of `titan list --files`, which blanks may follow inside.
std::set<fs::path> plugin_files(const std::string& table, const std::string& only_name) {
  constexpr int kColumnsBefore = 4;  // kind, name, plugin, version
  std::set<fs::path> files;
  std::istringstream lines(table);
  std::string line;
  std::getline(lines, line);  // the header
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string name, word;
    for (int i = 0; i < kColumnsBefore && words >> word; ++i)
      if (i == 1) name = word;
    std::string file;
    std::getline(words >> std::ws, file);
    if (only_name.empty() || name == only_name) files.insert(file);
  }
  return files;
}

/// "libc10.so => /path/libc10.so (0x7f...)", as the dynamic linker prints it
std::vector<fs::path> libraries_of(const fs::path& program, SignalInbox& signals) {
  SideRun run{.program = program.string(), .environment = {{"LD_TRACE_LOADED_OBJECTS", "1"}}};
  for (const std::string& line :
       environment_with_torch(installation_folder(), Environment::of_process()))
    if (line.starts_with("LD_LIBRARY_PATH=")) run.environment["LD_LIBRARY_PATH"] = line.substr(16);
  const std::string text = output_of(run, signals);
  std::vector<fs::path> libraries;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t arrow = line.find(" => "), end = line.rfind(" (0x");
    if (arrow == line.npos || end == line.npos || end < arrow + 4) continue;
    libraries.emplace_back(line.substr(arrow + 4, end - arrow - 4));
  }
  return libraries;
}

OutsideFile outside(const fs::path& path, int64_t& left) {
  OutsideFile file{.path = fs::absolute(path).lexically_normal(),
                   .bytes = static_cast<int64_t>(fs::file_size(path))};
  if (file.bytes <= left) {
    file.sha256 = sha256_of_file(path);
    left -= file.bytes;
  }
  return file;
}

class SnapshotWriter {
 public:
  SnapshotWriter(const SnapshotRequest& request, const fs::path& into, SignalInbox& signals)
      : request_(request), into_(into), signals_(signals) {}

  Snapshot write() {
    snapshot_.version = std::string(trimmed(
        output_of({.program = request_.program.string(), .arguments = {"--version"}}, signals_)));
    copy_plugins();  // first: it checks the job
    copy_program();
    copy_to(request_.recipe, into_ / "given.toml");
    for (const fs::path& folder : request_.code) copy_code(folder);
    resolve();
    return std::move(snapshot_);
  }

 private:
  std::vector<std::string> job() const {
    std::vector<std::string> words{"--job.config_file=" + request_.recipe.string()};
    words.insert(words.end(), request_.flags.begin(), request_.flags.end());
    return words;
  }

  void copy_plugins() {
    std::vector<std::string> words{"list", "--files", "--ranks", std::to_string(request_.ranks),
                                   "--for-job"};
    const std::vector<std::string> flags = job();
    words.insert(words.end(), flags.begin(), flags.end());
    std::set<fs::path> files = plugin_files(
        output_of({.program = request_.program.string(), .arguments = words}, signals_), "");
    files.merge(plugin_files(output_of({.program = request_.program.string(),
                                        .arguments = {"list", "command", "--files"}},
                                       signals_),
                             "launch"));
    std::set<fs::path> folders;
    for (const fs::path& file : files) {
      if (!file.has_filename()) continue;  // linked into the program
      copy_to(file, into_ / "lib/titan/plugins" / file.filename());
      folders.insert(file.parent_path());
    }
    for (const fs::path& folder : folders) copy_helpers(folder);
  }

  /// The programs that plugins start are in the plugins' folder.
  void copy_helpers(const fs::path& folder) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      const fs::path to = into_ / "lib/titan/plugins" / entry.path().filename();
      const bool is_program = entry.is_regular_file() && entry.path().extension() != ".so" &&
                              ::access(entry.path().c_str(), X_OK) == 0;
      if (is_program && !fs::exists(to)) copy_to(entry.path(), to);
    }
  }

  void copy_program() {
    const fs::path trainer = request_.program.parent_path() / "titan-train";
    copy_to(request_.program, into_ / "bin/titan");
    copy_to(trainer, into_ / "bin/titan-train");
    int64_t unlimited = INT64_MAX;
    for (const fs::path& library : libraries_of(trainer, signals_)) {
      const std::string name = library.filename().string();
      if (name.starts_with("libtitan_"))
        copy_to(library, into_ / "lib" / name);
      else
        snapshot_.libraries.push_back(outside(library, unlimited));
      if (name.starts_with("libtorch_cpu.so")) snapshot_.torch_folder = library.parent_path();
    }
  }

  void copy_code(const fs::path& folder) {
    TITAN_CHECK(fs::is_directory(folder), config, "--code: '", folder.string(),
                "' is not a folder");
    const std::set<std::string> left_out{".git", ".venv", "build", "__pycache__"};
    const std::string name = fs::absolute(folder / ".").parent_path().filename().string();
    for (auto entry = fs::recursive_directory_iterator(folder); entry != fs::end(entry); ++entry) {
      if (entry->is_directory() && left_out.contains(entry->path().filename().string()))
        entry.disable_recursion_pending();
      else if (entry->is_regular_file())
        copy_to(entry->path(), into_ / "code" / name / entry->path().lexically_relative(folder));
    }
  }

  /// The copies resolve the job, so the recipe is what they will run.
  void resolve() {
    std::vector<std::string> words{"train", "--dry-run", "--world-size",
                                   std::to_string(request_.ranks)};
    if (request_.is_elsewhere) words.push_back("--elsewhere");
    const std::vector<std::string> flags = job();
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), {"--set", "plugins.paths=[]"});
    const std::string recipe = output_of(
        {.program = (into_ / "bin/titan").string(),
         .arguments = words,
         .environment = {{"TITAN_PLUGIN_PATH", ""},
                         {"TITAN_TORCH_ROOT", snapshot_.torch_folder.parent_path().string()},
                         {"LD_LIBRARY_PATH",
                          (into_ / "lib").string() + ":" + snapshot_.torch_folder.string()}}},
        signals_);
    write_text_atomically(into_ / "recipe.toml", recipe);
    int64_t left = kMostHashedBytes;
    const auto config = parse_run_config("the recipe", recipe);
    for (const char* key : {"model.hf_assets_path", "training.dataset_path"})
      if (const auto found = config.find(key); found != config.end())
        if (const Value path = parse_json(found->second); path.is_string())
          add_inputs(path.as_string(), left);
  }

  void add_inputs(const fs::path& path, int64_t& left) {
    std::error_code error;
    if (fs::is_regular_file(path, error)) snapshot_.inputs.push_back(outside(path, left));
    if (!fs::is_directory(path, error)) return;
    for (const fs::path& file : files_below(path))
      snapshot_.inputs.push_back(outside(path / file, left));
  }

  const SnapshotRequest& request_;
  const fs::path& into_;
  SignalInbox& signals_;
  Snapshot snapshot_;
};

}  // namespace

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path().lexically_relative(folder));
  std::sort(files.begin(), files.end());
  return files;
}

Snapshot take_snapshot(const SnapshotRequest& request, const fs::path& into, SignalInbox& signals) {
  return SnapshotWriter(request, into, signals).write();
}

}  // namespace titan::commands
