// Runs a program to its end, with a time limit and its output captured. Used for the processes of
// tests and for the jobs and commands that tests start.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace titan::conformance {

struct ProgramRun {
  bool ran_out_of_time = false;
  int status = 0;  ///< as waitpid gives it
  int code = 0;    ///< exit code; 128 + n for signal n
  std::string output, errors;
  double seconds = 0;

  /// "ended with exit code 1", or how long it ran in vain, and the last lines of its output.
  std::string end() const;
};

struct ProgramCall {
  std::filesystem::path program;
  std::vector<std::string> arguments;
  std::filesystem::path folder;             ///< working folder; empty: this process's
  std::vector<std::string> variables = {};  ///< "NAME=value", in addition to this process's
  double limit = 600;                       ///< seconds; afterwards the program is killed
};

/// Throws an io Error if the program cannot be started.
ProgramRun run_program(const ProgramCall& call);

}  // namespace titan::conformance
