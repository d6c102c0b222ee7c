// Runs a program to its end and notes when each of its steps was done and what had been executed by
// then. Used by titan bench for both sides of a comparison.
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

/// Seen from outside: some microseconds after the step told of itself.
struct StepMark {
  int64_t step = 0;
  std::optional<CpuCounts> counts;  ///< up to here
};

struct MeasuredRun {
  int status = 0;       ///< as waitpid gives it
  double launched = 0;  ///< seconds since 1970, before the process was made
  double seconds = 0;   ///< from launch to its end
  std::string output, errors;
  std::vector<StepMark> marks;
  std::string counters_refused;     ///< why the marks lack counts
  double cpu_seconds = 0;           ///< user and system, of the whole life of all its processes
  int64_t peak_resident_bytes = 0;  ///< of the largest single process
};

/// `metrics`: the file in whose lines {"step": n, ...} the steps tell of themselves, which need not
/// exist yet while its folder does; absent: they do so on standard output. Signals that ask this
/// program to end kill the child and end the measurement by an io Error. Throws an io Error when
/// the program cannot be run.
MeasuredRun run_measured(const ChildCommand& command,
                         const std::optional<std::filesystem::path>& metrics, SignalInbox& signals);

}  // namespace titan::commands
