// titan submit FILE: copies the programs, plugins and recipe of a job with their hashes into the
// run's folder, and gives a job to a scheduler that runs these copies.
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include <titan/command.h>
#include <titan/error.h>
#include <titan/files/checksum.h>
#include <titan/files/file.h>
#include <titan/job_parts.h>
#include <titan/plugin.h>
#include <titan/program/clock.h>
#include <titan/program/exit_codes.h>
#include <titan/program/quantity_text.h>
#include <titan/program/terminal.h>
#include <titan/program/text.h>
#include <titan/suggest.h>

#include "../common/shell_text.h"
#include "../common/side_runs.h"
#include "submission.h"
#include "templates.h"

namespace titan::commands {
namespace {

namespace fs = std::filesystem;

struct SubmitOptions {
  std::string scheduler = "none";
  std::optional<std::string> name, send;
  int64_t nodes = 1, ranks_per_node = 1;
  std::string image = "titan:latest", volume = "work";
  std::optional<fs::path> volume_path;
  std::vector<fs::path> code;
  bool elsewhere = false, dry_run = false;
};

/// The template of a scheduler's job.
struct JobTemplate {
  std::string text, name;
  TemplateLanguage language = TemplateLanguage::shell;

  const char* file() const {
    return language == TemplateLanguage::shell ? "job.sbatch" : "job.yaml";
  }
};

/// `asked`: the name of a built-in template, or a file.
std::optional<JobTemplate> template_of(const std::string& asked) {
  if (asked == "none") return std::nullopt;
  std::vector<std::string> names{"none"};
  for (const BuiltInTemplate& known : kBuiltInTemplates) {
    if (asked == known.name)
      return JobTemplate{known.text, asked,
                         asked == "slurm" ? TemplateLanguage::shell : TemplateLanguage::yaml};
    names.emplace_back(known.name);
  }
  if (fs::is_regular_file(asked)) {
    const std::string ending = fs::path(asked).extension().string();
    return JobTemplate{
        read_text(asked), asked,
        ending == ".yaml" || ending == ".yml" ? TemplateLanguage::yaml : TemplateLanguage::shell};
  }
  const std::string hint = did_you_mean(asked, names);
  fail(ErrorKind::config, "--scheduler '", asked, "' is neither ", "none, slurm, jobset nor ",
       "pytorchjob, nor the file of a template", hint.empty() ? "" : "; ", hint);
}

/// A name that Kubernetes and Slurm accept: "my-run".
std::string job_name_of(const std::string& text) {
  constexpr size_t kMost = 40;
  std::string name;
  for (const char c : lower_case(text)) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      name += c;
    else if (!name.empty() && name.back() != '-')
      name += '-';
    if (name.size() == kMost) break;
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) ? "run-" + name
                                                                                : name;
}

class Submit final : public Command {
 public:
  static constexpr CommandWords kWords{
      .usage = "FILE", .fewest = 1, .most = SIZE_MAX, .takes_job = true};

  Submit(const SubmitOptions& options, CommandContext context)
      : options_(options), context_(std::move(context)) {}

  int run() override {
    TITAN_CHECK(!context_.words.front().starts_with("-"), config,
                "name the file of the job first: titan submit FILE ", context_.words.front(),
                " ...");
    const fs::path recipe = context_.words.front();
    const std::vector<std::string> flags(context_.words.begin() + 1, context_.words.end());
    TITAN_CHECK(fs::is_regular_file(recipe), config, "there is no file '", recipe.string(), "'");
    const std::optional<JobTemplate> job = template_of(options_.scheduler);
    std::vector<std::string> words{"--job.config_file=" + recipe.string()};
    words.insert(words.end(), flags.begin(), flags.end());
    run_ = fs::absolute(context_.parts->dump_folder(words)).lexically_normal();
    if (!run_.has_filename()) run_ = run_.parent_path();
    const fs::path submitted = run_ / "submitted";
    TITAN_CHECK(!fs::exists(submitted), config, "'", submitted.string(),
                "' exists already; start it again (",
                job ? "or give its job to the scheduler" : "run.sh",
                "), or choose another --job.dump_folder");
    write(recipe, flags, job, submitted);
    return job ? hand_over(*job, submitted) : say_how_to_start(submitted);
  }

 private:
  int64_t ranks() const { return options_.nodes * options_.ranks_per_node; }

  /// Writes the folder under another name, so that it is complete or absent.
  void write(const fs::path& recipe, const std::vector<std::string>& flags,
             const std::optional<JobTemplate>& job, const fs::path& submitted) {
    const fs::path unfinished = run_ / ("submitted." + std::to_string(::getpid()) + ".tmp");
    std::error_code error;
    fs::create_directories(unfinished, error);
    TITAN_CHECK(!error, io, "cannot make the folder '", unfinished.string(), "': ", error.message(),
                "; choose another --job.dump_folder");
    try {
      const Snapshot snapshot = take_snapshot({.program = context_.program,
                                               .recipe = recipe,
                                               .flags = flags,
                                               .code = options_.code,
                                               .ranks = ranks(),
                                               .is_elsewhere = options_.elsewhere},
                                              unfinished, signals_);
      if (job)
        write_text_atomically(unfinished / job->file(),
                              filled_in(job->text, job->name, job->language, values(submitted)));
      write_script(unfinished / "run.sh", run_script(snapshot, flags, fs::current_path()));
      std::vector<OutsideFile> outside = snapshot.libraries;
      outside.insert(outside.end(), snapshot.inputs.begin(), snapshot.inputs.end());
      write_text_atomically(unfinished / "inputs.sha256", sums_of(outside));
      write_text_atomically(unfinished / "manifest.json",
                            to_json(manifest(snapshot, flags, unfinished), 2) + "\n");
      write_text_atomically(unfinished / "SHA256SUMS", sums_below(unfinished));
      rename_file(unfinished, submitted);
    } catch (...) {
      fs::remove_all(unfinished, error);
      throw;
    }
  }

  static void write_script(const fs::path& path, const std::string& text) {
    write_text_atomically(path, text);
    fs::permissions(path, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                    fs::perm_options::add);
  }

  Placeholders values(const fs::path& submitted) const {
    return {{"NAME", job_name_of(options_.name.value_or(run_.filename().string()))},
            {"RUN", run_.string()},
            {"START", (submitted / "run.sh").string()},
            {"NODES", std::to_string(options_.nodes)},
            {"WORKERS", std::to_string(options_.nodes - 1)},
            {"RANKS_PER_NODE", std::to_string(options_.ranks_per_node)},
            {"IMAGE", options_.image},
            {"VOLUME", options_.volume},
            {"VOLUME_PATH", options_.volume_path.value_or(fs::current_path()).string()}};
  }

  static Value to_list(const std::vector<OutsideFile>& files) {
    Value::List list;
    for (const OutsideFile& file : files)
      list.push_back(Value::map({{"path", file.path.string()},
                                 {"bytes", file.bytes},
                                 {"sha256", file.sha256.empty() ? Value() : Value(file.sha256)}}));
    return list;
  }

  Value manifest(const Snapshot& snapshot, const std::vector<std::string>& flags,
                 const fs::path& folder) const {
    Value::List files, words;
    for (const fs::path& file : files_below(folder))
      files.push_back(Value::map({{"path", file.string()},
                                  {"bytes", static_cast<int64_t>(fs::file_size(folder / file))},
                                  {"sha256", sha256_of_file(folder / file)}}));
    for (const std::string& flag : flags) words.push_back(flag);
    return Value::map({{"format", "titan submission"},
                       {"version", 1},
                       {"time", wall_seconds()},
                       {"titan", snapshot.version},
                       {"working_folder", fs::current_path().string()},
                       {"flags", Value(std::move(words))},
                       {"nodes", options_.nodes},
                       {"ranks_per_node", options_.ranks_per_node},
                       {"scheduler", options_.scheduler},
                       {"files", Value(std::move(files))},
                       {"libraries", to_list(snapshot.libraries)},
                       {"inputs", to_list(snapshot.inputs)}});
  }

  int say_how_to_start(const fs::path& submitted) const {
    print((submitted / "run.sh").string() + "\n");
    say("start the run: " + (submitted / "run.sh").string() +
        (ranks() > 1 ? " --ranks " + std::to_string(ranks()) : ""));
    return kExitDone;
  }

  int hand_over(const JobTemplate& job, const fs::path& submitted) {
    const fs::path script = submitted / job.file();
    std::string command =
        job.language == TemplateLanguage::yaml
            ? "kubectl create -f"
            : "sbatch --parsable --output=" + shell_word((run_ / "slurm-%j.log").string());
    if (options_.send) command = *options_.send;
    command += " " + shell_word(script.string());
    if (options_.dry_run) {
      print(script.string() + "\n");
      say("nothing was submitted; submit it: " + command);
      return kExitDone;
    }
    const SideRunsEnd end =
        run_side_by_side({{.program = "/bin/sh", .arguments = {"-c", command}}}, 1, signals_);
    const SideRunEnd& sent = end.runs.front();
    TITAN_CHECK(sent.status == 0, io, "'", command, "' ", how_it_ended(sent.status), ": ",
                trimmed(sent.errors), "; everything is in ", submitted.string(),
                "; submit it again by that command");
    print(std::string(trimmed(sent.output)) + "\n");
    say("submitted " + script.string());
    return kExitDone;
  }

  static void say(const std::string& line) { print_to_errors("[submit] " + line + "\n"); }

  SubmitOptions options_;
  CommandContext context_;
  SignalInbox signals_;
  fs::path run_;
};

}  // namespace
}  // namespace titan::commands

TITAN_PLUGIN(plugin) {
  using Options = titan::commands::SubmitOptions;
  plugin
      .add<titan::commands::Submit>("submit",
                                    "copy a job with its code into its folder, and queue it")
      .option("scheduler", &Options::scheduler,
              "template of the job: none, slurm, jobset, pytorchjob, or a file; with none only "
              "the copies are made")
      .option("nodes", &Options::nodes, "nodes of the job")
      .at_least(1)
      .option("ranks_per_node", &Options::ranks_per_node, "ranks on each node")
      .at_least(1)
      .option("name", &Options::name, "name of the job; unset: that of the run's folder")
      .option("image", &Options::image, "container image, for Kubernetes")
      .option("volume", &Options::volume, "persistent volume claim with run and data")
      .option("volume_path", &Options::volume_path,
              "where pods mount it; unset: this working folder")
      .option("code", &Options::code, "folder with sources to copy as well; may be repeated")
      .option("send", &Options::send,
              "command that gives the job to the scheduler; unset: sbatch or kubectl create")
      .option("elsewhere", &Options::elsewhere, "the job's files need not be on this machine")
      .option("dry_run", &Options::dry_run, "write everything, but do not submit it");
}
