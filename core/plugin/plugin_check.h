// Checks a plugin in a child process, so that a library that aborts, faults, exits or hangs while
// it is loaded becomes a report. Used by `titan check`.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/plugin/library.h"

namespace titan::core {

struct PluginCheck {
  std::vector<std::string> passed;  ///< the steps that succeeded: "the library was opened"
  std::vector<std::string> notes;   ///< checks that were not possible, and why
  std::string problem;              ///< the report of the fault; empty = the plugin can be used
};

/// Runs `work` in a forked child whose output is captured. `work` calls `begin` before each step
/// ("the library was opened") and returns its notes. The text of an exception that it throws
/// becomes the problem, unchanged. Any other end does too, after `headline`: the signal or exit
/// code, the step and the child's last output. After `limit` the child and its children are killed.
/// Thread: call it while the process has one thread, as at the start of a command.
PluginCheck run_in_child(
    const std::string& headline,
    const std::function<std::vector<std::string>(const LoadProgress& begin)>& work,
    std::chrono::milliseconds limit);

/// The whole check of one file: manifest, compatibility, libraries, opening, registrations,
/// defaults, and the presets of its flavors (of another plugin's model only when `folders` have
/// that model).
PluginCheck check_plugin(const std::filesystem::path& file,
                         const std::vector<std::filesystem::path>& folders,
                         std::chrono::milliseconds limit);

}  // namespace titan::core
