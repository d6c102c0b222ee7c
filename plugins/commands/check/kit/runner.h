// Chooses the tests of a plugin file, runs each in a process of its own, and judges the outcomes by
// conformance.toml.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <titan/plugin_files.h>

#include "results.h"

namespace titan::conformance {

struct RunSettings {
  std::filesystem::path file;    ///< of the plugin
  std::filesystem::path expect;  ///< conformance.toml; empty: the one next to the plugin
  std::filesystem::path program;
  std::string only;  ///< pattern of test names; empty: all
  uint64_t seed = 0;
  double test_timeout = 120;  ///< seconds
  bool in_process = false;    ///< for debuggers: no child processes, no time limit
};

/// A test and what it is about.
struct ChosenTest {
  const Test* test = nullptr;
  Subject subject;
  std::string id() const;
};

/// The components of a plugin under their option sets.
std::vector<Subject> subjects_of(const OpenedPlugin& plugin, PluginFiles& files,
                                 const Expectations& expectations);
/// Every test of every subject whose kind it is about.
std::vector<ChosenTest> choose(const std::vector<Subject>& subjects, const std::string& only);

/// Runs the tests and calls `report` after each. A file that cannot be loaded throws a plugin
/// Error.
ResultSet run_conformance(const RunSettings& settings, PluginFiles& files,
                          const std::function<void(const Result&)>& report);

}  // namespace titan::conformance
