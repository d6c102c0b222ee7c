// Runs a program to its end and returns what it prints. Used by commands that ask other programs,
// such as titan itself, and by titan check for tests and their jobs.
#pragma once

#include <signal.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <titan/program/child.h>

namespace titan::commands {

struct ChildOutput {
  int status = 0;        ///< from waitpid
  bool is_late = false;  ///< it was killed at the time limit
  std::string out, errors;
  bool succeeded() const { return !is_late && status == 0; }
};

/// Runs `command` with the signal mask `mask`. Kills it after `seconds`, and at its end what is
/// left of its process group. Keeps at least half of `most_bytes` from the end of a longer stream.
/// Throws an io Error if it cannot be started.
ChildOutput output_of(const ChildCommand& command, const sigset_t& mask, double seconds,
                      size_t most_bytes = SIZE_MAX);
/// The variables of this process, "NAME=value".
std::vector<std::string> environment_of_process();
/// The same with this process's signal mask.
ChildOutput output_of(const std::filesystem::path& program, std::vector<std::string> arguments,
                      double seconds,
                      std::vector<std::string> environment = environment_of_process());

}  // namespace titan::commands
