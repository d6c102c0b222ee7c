#include "core/plugin/plugin_check.h"

#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <exception>
#include <utility>

#include <titan/error.h>
#include <titan/shown_text.h>

#include "core/plugin/catalog.h"
#include "core/plugin/child_process.h"
#include "core/plugin/flavor_preset.h"
#include "core/plugin/registration.h"
#include "core/plugin/registry.h"

namespace titan::core {
namespace {

constexpr size_t kLinesShown = 3;
constexpr size_t kLineShown = 200;  // bytes

// The child's report is a sequence of records: a letter, the text, a NUL.
enum Record : char { kStep = 's', kNote = 'n', kProblem = 'p', kDone = 'd' };

std::string as_record(Record kind, const std::string& text) {
  return static_cast<char>(kind) + text + std::string(1, '\0');
}

/// The last lines of a child's output as an indented block; empty when it was silent.
std::string last_output(const std::string& output) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < output.size();) {
    const size_t end = std::min(output.find('\n', begin), output.size());
    const std::string_view line = std::string_view(output).substr(begin, end - begin);
    if (line.find_first_not_of(" \t\r") != line.npos) lines.push_back(printable(line, kLineShown));
    begin = end + 1;
  }
  if (lines.empty()) return "";
  std::string text = "\n  last output:";
  for (size_t i = lines.size() - std::min(lines.size(), kLinesShown); i < lines.size(); ++i)
    text += "\n    " + lines[i];
  return text;
}

std::string end_of(const ChildEnd& end, std::chrono::milliseconds limit) {
  if (end.was_killed_for_time)
    return titan::detail::concat("it did not finish within ", limit.count() / 1000.0, " s");
  if (WIFSIGNALED(end.status))
    return titan::detail::concat("it ended with signal ", WTERMSIG(end.status), " (",
                                 ::strsignal(WTERMSIG(end.status)), ")");
  return titan::detail::concat("it ended the process with exit code ", WEXITSTATUS(end.status));
}

std::vector<std::string> check_flavors(const LoadedPlugin& plugin,
                                       const std::vector<std::filesystem::path>& folders) {
  std::vector<std::string> notes;
  const Catalog catalog(folders);
  Registry registry(catalog);
  std::string problems;
  for (const Flavor& flavor : plugin.registered.flavors()) {
    const Component* model = nullptr;
    for (const Component& component : plugin.registered.components())
      if (component.kind == "model" && component.name == flavor.model) model = &component;
    const std::string name = "flavor '" + flavor.name + "' of model '" + flavor.model + "'";
    if (!model && catalog.providers("model", flavor.model).empty()) {
      notes.push_back(name + " was not checked: no plugin on the search path has the model");
      continue;
    }
    try {
      if (!model) model = &registry.component("model", flavor.model);
    } catch (const Error& e) {  // the model's plugin is at fault, not this one
      notes.push_back(name + " was not checked: " + e.what());
      continue;
    }
    for (const std::string& problem : preset_problems(flavor, model->schema))
      problems += "\n    " + name + ": " + problem;
  }
  TITAN_CHECK(problems.empty(), plugin, cannot_use(plugin.manifest, plugin.file),
              "\n  presets do not fit their models:", problems);
  return notes;
}

}  // namespace

PluginCheck run_in_child(
    const std::string& headline,
    const std::function<std::vector<std::string>(const LoadProgress& begin)>& work,
    std::chrono::milliseconds limit) {
  const ChildEnd end = run_forked(
      [&](const std::function<void(std::string_view)>& report) {
        try {
          const auto notes = work([&](const std::string& step) { report(as_record(kStep, step)); });
          for (const std::string& note : notes) report(as_record(kNote, note));
          report(as_record(kDone, ""));
        } catch (...) {
          report(as_record(kProblem, describe_current_exception()));
        }
      },
      limit);

  PluginCheck report;
  bool is_done = false;
  for (size_t begin = 0; begin < end.records.size();) {
    const size_t stop = std::min(end.records.find('\0', begin), end.records.size());
    const std::string text = end.records.substr(begin + 1, stop - begin - 1);
    switch (end.records[begin]) {
      case kStep:
        report.passed.push_back(text);
        break;
      case kNote:
        report.notes.push_back(text);
        break;
      case kProblem:
        report.problem = text;
        break;
      default:
        is_done = true;
    }
    begin = stop + 1;
  }
  if (is_done) return report;
  std::string step = "it was loaded";
  if (!report.passed.empty()) {
    step = report.passed.back();
    report.passed.pop_back();
  }
  if (report.problem.empty())
    report.problem =
        headline + "\n  " + end_of(end, limit) + " while " + step + last_output(end.output);
  return report;
}

PluginCheck check_plugin(const std::filesystem::path& file,
                         const std::vector<std::filesystem::path>& folders,
                         std::chrono::milliseconds limit) {
  const std::string first_step = "its manifest was read";
  const std::filesystem::path absolute = std::filesystem::absolute(file).lexically_normal();
  Manifest manifest;
  try {
    manifest = read_manifest(absolute);
  } catch (const Error& e) {
    PluginCheck report;
    report.problem = e.what();
    return report;
  }
  PluginCheck report = run_in_child(
      cannot_use(manifest, absolute.string()),
      [&](const LoadProgress& begin) {
        const auto loaded = load_plugin(absolute, manifest, begin);
        if (loaded->registered.flavors().empty()) return std::vector<std::string>();
        begin("the presets of its flavors were checked");
        return check_flavors(*loaded, folders);
      },
      limit);
  report.passed.insert(report.passed.begin(), first_step);
  return report;
}

}  // namespace titan::core
