#include "jobs.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/settings/settings.h>

namespace titan::conformance {
namespace {

namespace fs = std::filesystem;

std::string quoted_key(const std::vector<std::string>& path) {
  std::string text;
  for (const std::string& part : path) text += (text.empty() ? "" : ".") + to_json(Value(part));
  return text;
}

std::string toml_text(const Value& value) {
  std::string text;
  if (value.is_map()) {
    for (const auto& [name, member] : value.as_map())
      text += (text.empty() ? "" : ", ") + to_json(Value(name)) + " = " + toml_text(member);
    return "{" + text + "}";
  }
  if (value.is_list()) {
    for (const Value& item : value.as_list()) text += (text.empty() ? "" : ", ") + toml_text(item);
    return "[" + text + "]";
  }
  return to_json(value);
}

std::vector<std::string> key_path(const std::string& key) {
  return split_dotted(key);
}

}  // namespace

Job::Job(const TestContext& test, std::string name) : test_(&test), name_(std::move(name)) {
  set("model.name", "llama3").set("model.flavor", "debugmodel");
  set("model.dim", 32).set("model.n_layers", 4).set("model.n_heads", 4).set("model.n_kv_heads", 2);
  set("model.vocab_size", 64).set("model.multiple_of", 16);
  set("model.hf_assets_path", "");  // no tokenizer: the documents are tokens
  set("training.dataset", "synthetic").set("dataset.synthetic.vocab_size", 64);
  set("dataset.synthetic.document_length", 24);
  set("training.seq_len", 32).set("training.global_batch_size", 4);
  set("training.local_batch_size", 2).set("training.steps", 4);
  set("training.mixed_precision_param", "float32");
  set("optimizer.lr", 1e-2).set("lr_scheduler.warmup_steps", 1);
  set("metrics.loggers", Value::list({"jsonl"})).set("metrics.log_freq", 1);
  set("debug.seed", static_cast<int64_t>(test.seed() % 100000)).set("debug.deterministic", true);
  set("comm.init_timeout_seconds", 60).set("comm.train_timeout_seconds", 60);
  const fs::path own = test.place().file.parent_path();
  std::error_code unknown;
  if (!fs::equivalent(own, test.place().own_folder, unknown))
    set("plugins.paths", Value::list({own.string()}));
}

Job& Job::set(const std::string& key, Value value) {
  keys_[key_path(key)] = std::move(value);
  return *this;
}

Job& Job::set_options(const std::vector<std::string>& section, const Value& options) {
  for (const auto& [name, value] : options.as_map()) {
    std::vector<std::string> path = section;
    path.push_back(name);
    keys_[path] = value;
  }
  return *this;
}

Job& Job::without(const std::string& prefix) {
  std::erase_if(keys_,
                [&](const auto& entry) { return begins_with(entry.first, key_path(prefix)); });
  return *this;
}

Job& Job::ranks(int count) {
  ranks_ = count;
  return *this;
}

Job Job::named(const std::string& name) const {
  Job copy = *this;
  copy.name_ = name;
  return copy;
}

fs::path Job::folder() const {
  return test_->place().folder / name_;
}

std::string Job::text() const {
  std::string lines;
  for (const auto& [path, value] : keys_)
    lines += quoted_key(path) + " = " + toml_text(value) + "\n";
  return lines + "\"job\".\"dump_folder\" = " + to_json(Value(folder().string())) + "\n";
}

ProgramRun Job::attempt(std::vector<std::string> more) const {
  const fs::path file = test_->place().folder / (name_ + ".toml");
  std::ofstream(file) << text();
  std::vector<std::string> words = {"train", "--job.config_file", file.string()};
  words.insert(words.end(), more.begin(), more.end());
  if (ranks_ > 1) {
    std::vector<std::string> launch = {
        "launch", "--nproc", std::to_string(ranks_), "--log-dir", (folder() / "logs").string(),
        "--"};
    words.insert(words.begin(), launch.begin(), launch.end());
  }
  return run_program({test_->place().program, words, test_->place().folder, {"OMP_NUM_THREADS=1"}});
}

JobRun Job::run() const {
  ProgramRun run = attempt();
  if (run.code != 0) throw Broken("the job '" + name_ + "' " + run.end());
  return {folder(), std::move(run)};
}

JobRun Job::run_unless_refused(const std::string& what) const {
  ProgramRun run = attempt();
  const bool has_started = fs::exists(folder() / "metrics.jsonl") &&
                           !JobRun(folder(), run).logged_losses().empty();
  if (run.code == 2 && !has_started) throw NotApplicable{"it refuses " + what + ": " + run.end()};
  if (run.code != 0) throw Broken("the job '" + name_ + "' " + run.end());
  return {folder(), std::move(run)};
}

namespace {

/// The keys of the option set.
void apply_set(Job& job, const OptionSet& set) {
  for (const auto& [key, value] : set.job) job.set(key, value);
}

/// Without the tiny model; the documents remain tokens.
Job& without_model(Job& job) {
  return job.without("model").set("model.hf_assets_path", "");
}

}  // namespace

Job plain_job(const TestContext& test, const std::string& name) {
  Job job(test, name);
  const OptionSet& set = test.subject().set;
  if (set.job.contains("model.name"))
    without_model(job);  // its sizes are not those of the tiny one
  apply_set(job, set);
  return job;
}

namespace {

/// One that the option set gives an axis needs its keys only; others run with FSDP.
void select_parallelism(Job& job, const Subject& subject) {
  job.ranks(subject.set.ranks);
  for (const auto& [key, value] : subject.set.job)
    if (key.starts_with("parallelism.")) return;
  job.set("parallelism.further", Value::list({subject.name}));
  job.set("parallelism.data_parallel_shard_degree", subject.set.ranks);
}

}  // namespace

Job job_with(const TestContext& test, const std::string& name) {
  const Subject& subject = test.subject();
  Job job = plain_job(test, name);
  std::vector<std::string> section = {subject.kind, subject.name};
  if (subject.kind == "converter") {
    job.set("model.converters", Value::list({subject.name}));
    if (subject.name.starts_with("quantize.")) section = key_path(subject.name);
  } else if (subject.kind == "activation_checkpoint")
    job.set("activation_checkpoint.mode", subject.name), section = {subject.kind};
  else if (subject.kind == "compile_backend")
    job.set("compile.enable", true).set("compile.backend", subject.name);
  else if (subject.kind == "pipeline_schedule")
    job.set("parallelism.pipeline_parallel_schedule", subject.name);
  else if (subject.kind == "watcher")
    job.set("job.watchers", Value::list({subject.name}));
  else if (subject.kind == "logger")
    job.set("metrics.loggers", subject.name == "jsonl" ? Value::list({"jsonl"})
                                                       : Value::list({"jsonl", subject.name}));
  else if (subject.kind == "dataset")
    job.set("training.dataset", subject.name).without("dataset.synthetic");
  else if (subject.kind == "parallelism")
    select_parallelism(job, subject);
  else if (subject.kind == "model")
    without_model(job).set("model.name", subject.name), section = {subject.kind};
  else
    job.without(subject.kind).set(subject.kind + ".name", subject.name), section = {subject.kind};
  apply_set(job, subject.set);
  job.set_options(section, subject.set.options);
  return job;
}

}  // namespace titan::conformance
