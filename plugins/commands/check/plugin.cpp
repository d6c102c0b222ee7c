// titan check: finds out whether a plugin file can be used here, and with --conformance whether it
// keeps the contract of its kind.
#include <cstdio>
#include <random>

#include <titan/command.h>
#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/plugin.h>
#include <titan/plugin_files.h>
#include <titan/program/exit_codes.h>
#include <titan/program/terminal.h>

#include "kit/runner.h"

namespace titan::conformance {
namespace {

struct CheckOptions {
  double timeout = 60, test_timeout = 120;
  bool conformance = false, list = false, in_process = false;
  std::string only;
  std::filesystem::path expect, json, junit;
  std::optional<int64_t> reproduce;
};

Value listed(const Test& test) {
  return Value::map({{"kind", test.kind},
                     {"test", test.name},
                     {"description", test.description},
                     {"ability", test.ability},
                     {"tolerance", test.tolerance}});
}

class Check final : public Command {
 public:
  static constexpr CommandWords kWords{"FILE", 0, 1};

  Check(const CheckOptions& options, CommandContext context)
      : options_(options), context_(std::move(context)), files_(*context_.plugin_files) {}

  int run() override {
    const bool has_file = !context_.words.empty();
    if (options_.list) return list();
    TITAN_CHECK(has_file, config, "FILE is missing; usage: titan check FILE [--conformance]");
    if (options_.conformance) return prove();
    const PluginFileReport report = files_.check(context_.words.front(), options_.timeout);
    for (const std::string& step : report.passed) print("ok    " + step + "\n");
    for (const std::string& note : report.notes) print("note  " + note + "\n");
    std::fflush(stdout);
    if (!report.problem.empty()) throw Error(ErrorKind::plugin, report.problem);
    print("the plugin can be used\n");
    return kExitDone;
  }

 private:
  /// Prints the tests of the plugin, or of all kinds.
  int list() {
    Value rows = Value::list();
    std::string text;
    const auto add = [&](const std::string& id, const Test& test) {
      rows.as_list().push_back(listed(test));
      text += id + (*test.ability ? " [" + std::string(test.ability) + "]" : "") + "\n    " +
              test.description + "\n";
    };
    if (context_.words.empty()) {
      for (const Test& test : all_tests()) add(std::string(test.kind) + "/" + test.name, test);
    } else {
      const std::filesystem::path file = context_.words.front();
      const auto subjects =
          subjects_of(files_.open(file), files_, read_expectations(options_.expect, file));
      for (const ChosenTest& one : choose(subjects, options_.only)) add(one.id(), *one.test);
    }
    if (!options_.json.empty())
      write_text_atomically(options_.json, to_json(rows, 1) + "\n");
    else
      print(text);
    return kExitDone;
  }

  int prove() {
    const RunSettings settings{
        .file = context_.words.front(),
        .expect = options_.expect,
        .program = context_.program,
        .only = options_.only,
        .seed = options_.reproduce ? static_cast<uint64_t>(*options_.reproduce)
                                   : std::random_device()() % 1000000,
        .test_timeout = options_.test_timeout,
        .in_process = options_.in_process,
    };
    const ResultSet set = run_conformance(settings, files_, [](const Result& result) {
      print(row_text(result));
      std::fflush(stdout);
    });
    print(summary_text(set));
    if (!options_.json.empty())
      write_text_atomically(options_.json, to_json(to_value(set), 1) + "\n");
    if (!options_.junit.empty()) write_text_atomically(options_.junit, to_junit(set));
    std::fflush(stdout);
    if (set.is_good()) return kExitDone;
    if (set.count(Verdict::failed) == 0)
      print_error(set.results.empty() ? "no test was run: --only '" + options_.only + "' names none"
                                      : "no test passed: all were left out or expected to fail");
    return kExitPluginError;
  }

  CheckOptions options_;
  CommandContext context_;
  PluginFiles& files_;
};

}  // namespace
}  // namespace titan::conformance

TITAN_PLUGIN(plugin) {
  using Options = titan::conformance::CheckOptions;
  plugin
      .add<titan::conformance::Check>(
          "check", "find out whether a plugin can be used here, and whether it keeps its contract")
      .option("timeout", &Options::timeout, "seconds that loading may take")
      .greater_than(0)
      .at_most(86400)
      .option("conformance", &Options::conformance,
              "run the tests of the plugin's kinds, each in a process of its own")
      .option("list", &Options::list,
              "print the tests with their sentences and abilities; without FILE those of all kinds")
      .option("only", &Options::only, "the tests whose name matches: 'layouts', 'optimizer/*'")
      .option("expect", &Options::expect,
              "expected failures, tolerances and option sets; default: NAME.conformance.toml or "
              "conformance.toml next to the plugin")
      .option("test_timeout", &Options::test_timeout, "seconds that one test may take")
      .greater_than(0)
      .at_most(86400)
      .option("in_process", &Options::in_process,
              "run the tests in this process, for a debugger; no time limit")
      .option("reproduce", &Options::reproduce, "seed of an earlier run, to draw the same again")
      .at_least(0)
      .option("json", &Options::json, "file for the results, or for the list, as JSON")
      .option("junit", &Options::junit, "file for the results as JUnit XML");
}
