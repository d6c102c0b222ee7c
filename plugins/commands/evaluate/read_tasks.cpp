#include "read_tasks.h"

#include <algorithm>
#include <map>
#include <set>

#include <titan/error.h>
#include <titan/settings/diagnostics.h>
#include <titan/settings/toml_source.h>
#include <titan/suggest.h>

#include "documents.h"

namespace titan::evaluation {
namespace {

namespace fs = std::filesystem;

/// Where doc_to_choice takes a list, a single text is a list of one.
Value as_declared(const Option& option, const Value& value) {
  const bool wraps = option.type == OptionType::list && value.is_string();
  return wraps ? Value::list({value}) : value;
}

/// Checks that the texts a kind of task needs are set, and no others.
void check_texts(const TaskOptions& options, const std::string& file, Diagnostics& wrong) {
  const auto require = [&](bool is_right, const std::string& what) {
    if (!is_right) add_mistake(wrong, file + ": " + what);
  };
  require(options.task.find('/') == std::string::npos,
          "task is the name of a file too, so it must not hold '/'");
  const bool has_choices = options.output_type == TaskKind::multiple_choice;
  const bool is_rolling = options.output_type == TaskKind::loglikelihood_rolling;
  require(!options.dataset.empty(), "dataset is missing: the file of the documents, JSON lines");
  require(!options.doc_to_target.empty(),
          is_rolling ? "doc_to_target is missing: the text that is scored"
                     : "doc_to_target is missing: the right choice, or the continuation");
  require(has_choices == !options.doc_to_choice.empty(),
          has_choices ? "doc_to_choice is missing: a field that is a list, or a list of texts"
                      : "doc_to_choice is only for output_type = 'multiple_choice'");
  require(!is_rolling || (options.doc_to_text.empty() && options.num_fewshot == 0 &&
                          options.description.empty()),
          "output_type 'loglikelihood_rolling' scores doc_to_target alone: it has no doc_to_text, "
          "description or num_fewshot");
  require(options.num_fewshot == 0 || !options.fewshot_dataset.empty(),
          "num_fewshot needs fewshot_dataset, the file of the examples");
}

std::optional<TaskOptions> read_task_file(const fs::path& file, Diagnostics& wrong) {
  Diagnostics here;
  const std::optional<SettingList> settings = read_toml(file, here);
  const Schema schema = task_schema();
  std::vector<std::string> names;
  for (const Option& option : schema.options) names.push_back(option.name);
  Value values = Value::map();
  if (settings) {
    for (const TableHeader& header : settings->tables)
      here.error(header.where, "a task has no sections; its keys are at the top of the file", "",
                 kTasksHelp);
    for (const Setting& setting : settings->settings) {
      const std::string name = dotted(setting.path);
      const Option* option = schema.find(name);
      if (!option) {
        if (setting.path.size() == 1)
          here.error(setting.key, "unknown key '" + name + "' of a task", did_you_mean(name, names),
                     kTasksHelp);
        continue;
      }
      const Value value = as_declared(*option, setting.value);
      if (setting.is_reported) continue;
      if (const auto problem = option->problem(value))
        here.error(setting.where, name + " " + *problem, "", kTasksHelp);
      else
        values[name] = value;
    }
  }
  TaskOptions options;
  if (here.can_start()) {
    schema.assign(&options, values);
    if (options.task.empty()) options.task = file.stem().string();
    check_texts(options, file.string(), here);
    for (fs::path* path : {&options.dataset, &options.fewshot_dataset})
      if (!path->empty()) *path = (file.parent_path() / *path).lexically_normal();
  }
  wrong.add(here);
  return here.can_start() ? std::optional(options) : std::nullopt;
}

/// Options of a data file without a task file, from the fields of its first line.
std::optional<TaskOptions> plain_options(const fs::path& file, const JsonLine& first,
                                         Diagnostics& wrong) {
  const auto has = [&](const char* name) { return first.object.find(name) != nullptr; };
  TaskOptions options{.task = file.stem().string(), .dataset = file};
  if (has("choices") && has("gold") && (has("query") || has("context"))) {
    options.doc_to_text = has("query") ? "query" : "context";
    options.doc_to_choice = {"choices"};
    options.doc_to_target = "gold";
  } else if (has("context") && has("continuation")) {
    options.output_type = TaskKind::loglikelihood;
    options.doc_to_text = "context";
    options.doc_to_target = "continuation";
  } else if (has("text")) {
    options.output_type = TaskKind::loglikelihood_rolling;
    options.doc_to_target = "text";
  } else {
    wrong.error({},
                first.place +
                    ": a line must have \"query\", \"choices\" and \"gold\", or \"context\" and "
                    "\"continuation\", or \"text\"; a task file (*.toml) names other fields");
    return std::nullopt;
  }
  return options;
}

/// Task files and plain data in the folders of `paths`, sorted by name.
std::vector<fs::path> files_of(const std::vector<fs::path>& paths, Diagnostics& wrong) {
  std::vector<fs::path> files;
  for (const fs::path& path : paths) {
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    std::vector<fs::path> tasks, data;
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.path().extension() == ".toml") tasks.push_back(entry.path());
      if (entry.path().extension() == ".jsonl") data.push_back(entry.path());
    }
    std::set<fs::path> named;
    Diagnostics reported_later;
    for (const fs::path& task : tasks)
      if (const auto options = read_task_file(task, reported_later)) {
        named.insert(options->dataset);
        named.insert(options->fewshot_dataset);
      }
    // a task file that cannot be read may name any of the data files
    if (!reported_later.can_start()) data.clear();
    std::erase_if(data,
                  [&](const fs::path& file) { return named.contains(file.lexically_normal()); });
    if (tasks.empty() && data.empty())
      add_mistake(wrong, path.string() + " holds no task: no *.toml and no *.jsonl");
    tasks.insert(tasks.end(), data.begin(), data.end());
    std::sort(tasks.begin(), tasks.end());
    files.insert(files.end(), tasks.begin(), tasks.end());
  }
  return files;
}

std::optional<Task> read_task(const fs::path& file, std::optional<int64_t> limit,
                              Diagnostics& wrong) {
  std::optional<TaskOptions> options;
  std::vector<JsonLine> lines, shots;
  if (file.extension() == ".toml") {
    options = read_task_file(file, wrong);
    if (!options) return std::nullopt;
    lines = read_json_lines(options->dataset, wrong);
  } else if (file.extension() == ".jsonl") {
    lines = read_json_lines(file, wrong);
    if (!lines.empty()) options = plain_options(file, lines.front(), wrong);
    if (!options) return std::nullopt;
  } else {
    add_mistake(wrong, file.string() + " is not a task: expected a *.toml, a *.jsonl or a folder");
    return std::nullopt;
  }
  if (options->num_fewshot > 0) {
    shots = read_json_lines(options->fewshot_dataset, wrong);
    const auto count = static_cast<size_t>(options->num_fewshot);
    if (shots.size() < count)
      add_mistake(wrong, file.string() + ": num_fewshot = " + std::to_string(count) + ", but " +
                             options->fewshot_dataset.string() + " has " +
                             std::to_string(shots.size()) + " documents");
    shots.resize(std::min(count, shots.size()));
  }
  Task task{.options = *options, .documents = {}, .num_original = lines.size()};
  task.documents = make_documents(*options, file.string(), lines, shots, wrong);
  if (limit && task.documents.size() > static_cast<size_t>(*limit))
    task.documents.resize(static_cast<size_t>(*limit));
  return task;
}

}  // namespace

std::vector<Task> read_tasks(const std::vector<fs::path>& paths, std::optional<int64_t> limit) {
  Diagnostics wrong;
  std::vector<Task> tasks;
  std::map<std::string, fs::path> names;
  for (const fs::path& file : files_of(paths, wrong)) {
    std::optional<Task> task = read_task(file, limit, wrong);
    if (!task) continue;
    const auto [first, is_new] = names.emplace(task->name(), file);
    if (!is_new)
      add_mistake(wrong, file.string() + ": task '" + task->name() + "' has the name of " +
                             first->second.string() + "; set task in one of them");
    tasks.push_back(std::move(*task));
  }
  if (!wrong.can_start()) throw ConfigError(wrong);
  return tasks;
}

}  // namespace titan::evaluation
