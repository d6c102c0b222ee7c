// Runs programs side by side to their exits, a fixed number at a time, and passes stop signals on
// to them. Used by commands that start `titan train` or a scheduler.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <titan/program/child.h>
#include <titan/program/signal_inbox.h>

namespace titan::commands {

struct SideRun {
  std::string program;
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;  ///< added to this process's variables
  /// Both streams are appended to this file; absent: they are returned.
  std::optional<std::filesystem::path> log;
};

struct SideRunEnd {
  bool was_started = false;  ///< false: a stop came first
  int status = 0;            ///< as waitpid gives it
  double seconds = 0;
  std::string output, errors;  ///< empty if there is a log
};

struct SideRunEvents {
  std::function<void(size_t)> started = [](size_t) {};
  std::function<void(size_t, const SideRunEnd&)> ended = [](size_t, const SideRunEnd&) {};
};

struct SideRunsEnd {
  std::vector<SideRunEnd> runs;   ///< in the order of the request
  std::optional<int> stopped_by;  ///< the signal that stopped them
};

/// Runs all of `runs`, at most `parallel` (> 0) at a time, in order. The first SIGTERM, SIGINT,
/// SIGHUP, SIGQUIT or SIGUSR1 is passed on to the running programs, and no further one is started.
/// A second one, except SIGUSR1, kills them. SIGUSR2 is passed on each time. If a program cannot be
/// started, the running ones are killed and an io Error is thrown. Call from the main thread.
SideRunsEnd run_side_by_side(const std::vector<SideRun>& runs, size_t parallel,
                             SignalInbox& signals, const SideRunEvents& events = {});

}  // namespace titan::commands
