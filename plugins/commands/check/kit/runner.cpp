#include "runner.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <sstream>

#include <titan/error.h>
#include <titan/files/checksum.h>
#include <titan/files/file.h>

#include "order.h"
#include "program.h"

namespace titan::conformance {
namespace {

namespace fs = std::filesystem;

/// An empty folder that is removed at the end.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (fs::temp_directory_path() / "titan-conformance-XXXXXX").string();
    TITAN_CHECK(::mkdtemp(name.data()), io, "cannot make a folder like ", name,
                "; TMPDIR names the place");
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

double limit_of(const Test& test, const std::string& id, const Expectations& expectations) {
  const auto own = expectations.tolerance(id);
  return own && test.tolerance >= 0 ? own->limit : test.tolerance;
}

/// Runs the test in this process.
Result tried(const ChosenTest& chosen, const Place& place, const Expectations& expectations) {
  const std::string id = chosen.id();
  Result result{.id = id, .description = chosen.test->description, .verdict = Verdict::passed};
  TestContext context(chosen.subject, place, limit_of(*chosen.test, id, expectations));
  const auto begin = std::chrono::steady_clock::now();
  try {
    chosen.test->run(context);
  } catch (const NotApplicable& none) {
    result.verdict = Verdict::not_applicable;
    result.detail = none.missing;
  } catch (const Skipped& none) {
    result.verdict = Verdict::skipped;
    result.detail = none.reason;
  } catch (const std::exception& error) {
    result.verdict = Verdict::failed;
    result.detail = error.what();
  } catch (...) {
    result.verdict = Verdict::failed;
    result.detail = "it threw an exception that is not derived from std::exception";
  }
  result.measured = context.measured();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

/// Runs the test in a child that is this program with --in-process.
Result tried_in_child(const ChosenTest& chosen, const RunSettings& settings,
                      const Expectations& expectations) {
  const std::string id = chosen.id();
  const ScratchFolder scratch;
  const fs::path answer = scratch.path() / "result.json";
  ProgramCall call{settings.program,
                   {"check", settings.file.string(), "--conformance", "--in-process", "--only", id,
                    "--reproduce", std::to_string(settings.seed), "--json", answer.string()},
                   {}};
  if (!expectations.file.empty())
    call.arguments.insert(call.arguments.end(), {"--expect", expectations.file.string()});
  call.limit = settings.test_timeout;
  const ProgramRun run = run_program(call);
  Result result{
      .id = id, .description = chosen.test->description, .detail = "the process " + run.end()};
  result.seconds = run.seconds;
  std::error_code unknown;
  if (run.ran_out_of_time || !fs::exists(answer, unknown)) return result;
  const Value all = read_json(answer);
  for (const Value& value : all.at("tests").as_list())
    if (value.at("test") == Value(id)) {
      Result read = result_of(value);
      // a test that passed and then crashed its process has not passed
      const bool ended_well = run.code == 0 || run.code == 3;
      if (ended_well) return read;
    }
  return result;
}

void judge(Result& result, const Expectations& expectations) {
  const auto reason = expectations.expected_failure(result.id);
  if (!reason) return;
  if (result.verdict == Verdict::failed) {
    result.verdict = Verdict::expected_failure;
    result.detail = *reason + "\n(" + result.detail + ")";
  } else if (result.verdict == Verdict::passed) {
    result.verdict = Verdict::failed;
    result.detail = "it passes, but " + expectations.file.string() + " expects it to fail (" +
                    *reason + "); remove the entry";
  }
}

/// Abilities that a component declares and no test is about.
void add_untested_abilities(const std::vector<Subject>& subjects, std::vector<Result>& results) {
  std::set<std::string> seen;
  for (const Subject& subject : subjects)
    for (const std::string& ability : subject.abilities) {
      const auto& tests = all_tests();
      const bool has_test = std::any_of(tests.begin(), tests.end(), [&](const Test& test) {
        return test.kind == subject.kind && test.ability == ability;
      });
      const std::string id = subject.kind + "/" + subject.name + "/ability_" + ability;
      if (!has_test && seen.insert(id).second)
        results.push_back({.id = id,
                           .description = "Every declared ability has a test.",
                           .verdict = Verdict::failed,
                           .detail = "this kit has no test for the ability " + ability});
    }
}

std::vector<std::string> widened_tolerances(const std::vector<ChosenTest>& chosen,
                                            const Expectations& expectations) {
  std::vector<std::string> rows;
  for (const ChosenTest& one : chosen) {
    const std::string id = one.id();
    const auto own = expectations.tolerance(id);
    if (!own || own->limit <= one.test->tolerance || one.test->tolerance < 0) continue;
    TITAN_CHECK(!own->reason.empty(), config, "cannot use ", expectations.file.string(),
                ": the tolerance ", own->limit, " of '", id, "' is wider than ",
                one.test->tolerance, " and has no reason; write {limit = ..., reason = \"...\"}");
    rows.push_back(titan::detail::concat(id, ": ", own->limit, " instead of ", one.test->tolerance,
                                         ", because ", own->reason));
  }
  return rows;
}

/// Every pattern of conformance.toml names a test.
void check_patterns(const Expectations& expectations, const std::vector<ChosenTest>& all) {
  const auto check = [&](const std::string& section, const std::string& pattern) {
    const bool is_known = std::any_of(all.begin(), all.end(), [&](const ChosenTest& one) {
      return names_test(pattern, one.id());
    });
    TITAN_CHECK(is_known, config, "cannot use ", expectations.file.string(), ": '", pattern,
                "' in ", section, " names no test of this plugin; --list shows them");
  };
  for (const auto& [pattern, reason] : expectations.expected_failures)
    check("expected_failures", pattern);
  for (const auto& [pattern, limit] : expectations.tolerances) check("tolerances", pattern);
}

}  // namespace

std::string ChosenTest::id() const {
  const std::string set = subject.set.name == "default" ? "" : "@" + subject.set.name;
  return subject.kind + "/" + subject.name + set + "/" + test->name;
}

std::vector<Subject> subjects_of(const OpenedPlugin& plugin, PluginFiles& files,
                                 const Expectations& expectations) {
  std::vector<Subject> subjects;
  const auto add = [&](Subject subject) {
    const auto found = expectations.sets.find(subject.kind + ":" + subject.name);
    std::vector<OptionSet> sets = {{.name = "default"}};
    if (found != expectations.sets.end()) sets = found->second;
    for (const OptionSet& set : sets) {
      subject.set = set;
      subjects.push_back(subject);
    }
  };
  for (const Component& component : plugin.registered->components())
    add({component.kind, component.name, &component, plugin.registered,
         files.abilities(component)});
  std::set<std::string> models;
  for (const Flavor& flavor : plugin.registered->flavors())
    if (models.insert(flavor.model).second)
      add({"flavor", flavor.model, nullptr, plugin.registered});
  for (const auto& [name, sets] : expectations.sets)
    TITAN_CHECK(std::any_of(subjects.begin(), subjects.end(),
                            [&, &name = name](const Subject& subject) {
                              return subject.kind + ":" + subject.name == name;
                            }),
                config, "cannot use ", expectations.file.string(),
                ": the plugin has no component '", name, "'");
  return subjects;
}

std::vector<ChosenTest> choose(const std::vector<Subject>& subjects, const std::string& only) {
  const auto is_named = [&](const std::string& id) {
    std::istringstream patterns(only);
    for (std::string pattern; std::getline(patterns, pattern, ',');)
      if (names_test(pattern, id)) return true;
    return false;
  };
  std::vector<ChosenTest> chosen;
  for (const Subject& subject : subjects)
    for (const Test& test : all_tests()) {
      const bool is_common = std::string_view(test.kind) == "*" && subject.kind != "flavor";
      if (!is_common && test.kind != subject.kind) continue;
      ChosenTest one{&test, subject};
      if (only.empty() || is_named(one.id())) chosen.push_back(std::move(one));
    }
  return chosen;
}

ResultSet run_conformance(const RunSettings& settings, PluginFiles& files,
                          const std::function<void(const Result&)>& report) {
  RunSettings own = settings;
  own.file = fs::absolute(settings.file).lexically_normal();
  const Expectations expectations = read_expectations(own.expect, own.file);
  if (!own.in_process) {
    const PluginFileReport loaded = files.check(own.file, own.test_timeout);
    TITAN_CHECK(loaded.problem.empty(), plugin, loaded.problem);
  }
  const OpenedPlugin plugin = files.open(own.file);
  const auto field = [&](const char* name) {
    const Value* text = plugin.manifest.find(name);
    return text ? text->as_string() : std::string();
  };
  ResultSet set{.file = own.file,
                .sdk_hash = field("sdk_abi"),
                .plugin = field("plugin") + " " + field("version"),
                .seed = own.seed};
  if (!own.in_process) set.sha256 = sha256_of_file(own.file);
  const std::vector<Subject> subjects = subjects_of(plugin, files, expectations);
  check_patterns(expectations, choose(subjects, ""));
  const std::vector<ChosenTest> chosen = choose(subjects, own.only);
  set.widened = widened_tolerances(chosen, expectations);
  const auto add = [&](Result result) {
    if (!own.in_process) judge(result, expectations);
    report(result);
    set.results.push_back(std::move(result));
  };
  std::map<std::string, std::set<std::string>> failed;  // names of tests, by component and set
  for (const ChosenTest& one : chosen) {
    const std::string ability = one.test->ability, id = one.id();
    std::set<std::string>& failed_here = failed[id.substr(0, id.rfind('/'))];
    const auto& has = one.subject.abilities;
    if (!ability.empty() && std::find(has.begin(), has.end(), ability) == has.end()) {
      add({.id = id,
           .description = one.test->description,
           .verdict = Verdict::not_applicable,
           .detail = "it does not declare " + ability});
    } else if (const std::string basis = failed_basis(*one.test, failed_here); !basis.empty()) {
      add({.id = id,
           .description = one.test->description,
           .verdict = Verdict::skipped,
           .detail = "it builds on the test '" + basis + "', which did not pass"});
      failed_here.insert(one.test->name);
    } else if (own.in_process) {
      const ScratchFolder scratch;
      add(tried(one, {own.file, own.program, files.own_folder(), scratch.path(), own.seed},
                expectations));
    } else {
      add(tried_in_child(one, own, expectations));
    }
    const Verdict verdict = set.results.back().verdict;
    if (verdict == Verdict::failed) failed_here.insert(one.test->name);
  }
  if (own.only.empty()) {
    std::vector<Result> untested;
    add_untested_abilities(subjects, untested);
    for (Result& result : untested) add(std::move(result));
  }
  return set;
}

}  // namespace titan::conformance
