// Runs a program to its exit, and records for each step the time and the CPU counts at its end.
// Used by titan bench for both sides of a comparison.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <titan/program/child.h>
#include <titan/program/signal_inbox.h>

#include "process_counters.h"

namespace titan::commands {

/// The end of one step, observed from outside: some microseconds after the program reported it.
struct StepMark {
  int64_t step = 0;
  /// Up to this step; none if the program had reported the next step when the counters were read.
  std::optional<CpuCounts> counts;
};

struct MeasuredRun {
  int status = 0;       ///< as waitpid gives it
  double launched = 0;  ///< seconds since 1970, before the process was made
  double seconds = 0;   ///< from launch to its end
  std::string output, errors;
  std::vector<StepMark> marks;
  std::string counters_refused;     ///< why the marks have no counts
  double cpu_seconds = 0;           ///< user and system, all processes, from launch to exit
  int64_t peak_resident_bytes = 0;  ///< of the largest single process
};

/// `metrics`: the file to which the program appends a line {"step": n, ...} per step. Its folder
/// must exist, the file need not. Absent: such lines are expected on standard output. A termination
/// signal to this process kills the child and throws an io Error. Throws an io Error when the
/// program cannot be run.
MeasuredRun run_measured(const ChildCommand& command,
                         const std::optional<std::filesystem::path>& metrics, SignalInbox& signals);

}  // namespace titan::commands
