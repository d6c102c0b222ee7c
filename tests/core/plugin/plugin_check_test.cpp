// Checks plugins in a child process: any failure there becomes a report here.
#include "core/plugin/plugin_check.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <stdexcept>

#include "tests/core/plugin/plugin_fixture.h"

namespace titan::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

PluginCheck tried(const std::string& name, milliseconds limit = minutes(10)) {
  return check_plugin(plugin_file(name), {}, limit);
}

TEST(PluginCheck, PassesASoundPluginStepByStep) {
  const PluginCheck report = tried("sound");
  EXPECT_EQ(report.problem, "");
  EXPECT_EQ(report.passed,
            (std::vector<std::string>{
                "its manifest was read", "its manifest was compared with this program",
                "the libraries that it needs were looked for", "the library was opened",
                "its components were registered", "its registrations were checked",
                "the presets of its flavors were checked"}));
  EXPECT_TRUE(report.notes.empty());
}

TEST(PluginCheck, ReportsAPluginThatAbortsWhileItIsOpened) {
  const PluginCheck report = tried("aborts");
  expect_golden("plugin_aborts", report.problem);
  EXPECT_EQ(report.passed.back(), "the libraries that it needs were looked for");
}

TEST(PluginCheck, ReportsAPluginThatFaults) {
  const std::string problem = tried("faults").problem;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  EXPECT_NE(problem.find("while the library was opened"), std::string::npos)
      << problem;  // the sanitizer ends it
#else
  expect_golden("plugin_faults", problem);
#endif
}

TEST(PluginCheck, ReportsAPluginThatEndsTheProcess) {
  expect_golden("plugin_exits", tried("exits").problem);
}

TEST(PluginCheck, StopsAPluginThatNeverComesBack) {
  expect_golden("plugin_hangs", tried("hangs_on_load", std::chrono::seconds(3)).problem);
}

TEST(PluginCheck, GivesTheSameTextsAsLoadingHere) {
  for (const std::string name :
       {"wrong_sdk", "no_manifest", "no_entry", "throws_int", "provides_more"})
    EXPECT_EQ(tried(name).problem, load_error(plugin_file(name)));
}

TEST(PluginCheck, ChecksFlavorsWhenTheirModelIsThere) {
  const auto file = plugin_folder("sound") / "more_flavors.plugin.so";
  const PluginCheck alone = check_plugin(file, {}, minutes(10));
  EXPECT_EQ(alone.problem, "");
  ASSERT_EQ(alone.notes.size(), 2u);
  EXPECT_EQ(
      alone.notes[0],
      "flavor 'large' of model 'toy' was not checked: no plugin on the search path has the model");
  expect_golden("plugin_presets",
                check_plugin(file, {plugin_folder("sound")}, minutes(10)).problem);
}

TEST(RunInChild, ShowsTheLastLinesOfAChildThatDies) {
  const PluginCheck report = run_in_child(
      "it failed",
      [](const LoadProgress& begin) {
        begin("first");
        begin("second");
        for (int i = 0; i < 100000; ++i) std::printf("line %d\n", i);
        std::fflush(stdout);
        std::raise(SIGKILL);
        return std::vector<std::string>();
      },
      minutes(10));
  EXPECT_EQ(report.passed, std::vector<std::string>{"first"});
  EXPECT_EQ(report.problem,
            "it failed\n  it ended with signal 9 (Killed) while second\n  last output:\n    line "
            "99997\n    line 99998\n"
            "    line 99999");
}

TEST(RunInChild, StopsAChildThatPrintsWithoutEnd) {
  const PluginCheck report = run_in_child(
      "it failed",
      [](const LoadProgress&) -> std::vector<std::string> {
        for (;;) std::puts("again");
      },
      milliseconds(300));
  EXPECT_NE(report.problem.find("it did not finish within 0.3 s while it was loaded"),
            std::string::npos);
}

TEST(RunInChild, BringsNotesAndExceptionsHome) {
  const auto notes = [](const LoadProgress&) { return std::vector<std::string>{"one", "two"}; };
  EXPECT_EQ(run_in_child("", notes, minutes(10)).notes, (std::vector<std::string>{"one", "two"}));
  const auto throws = [](const LoadProgress&) -> std::vector<std::string> {
    throw std::out_of_range("index 7");
  };
  EXPECT_EQ(run_in_child("", throws, minutes(10)).problem, "std::out_of_range: index 7");
}

}  // namespace
}  // namespace titan::core
