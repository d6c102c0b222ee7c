// Starts a program as a child: in its own process group, killed when its parent dies, with stdout
// and stderr in pipes. Used by titan launch for each rank, and by titan bench.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include <titan/export.h>
#include <titan/program/descriptor.h>

namespace titan {

struct ChildCommand {
  std::string program;                   ///< path of the file
  std::vector<std::string> arguments;    ///< without the program's name
  std::vector<std::string> environment;  ///< "NAME=value", the complete environment
};

struct StartedChild {
  pid_t pid = -1;             ///< also the id of its process group
  Descriptor output, errors;  ///< its stdout and stderr; reads do not block
};

/// Starts `command` with the signal mask `mask`, default handling of the signals that this program
/// ignores, and an empty stdin. The caller reaps it. Throws an io Error if no process can be
/// created or the program cannot be run; no process is left then. Call from the main thread: the
/// child dies with the thread that started it.
TITAN_API StartedChild start_child(const ChildCommand& command, const sigset_t& mask);

/// "ended with exit code 1", "was ended by signal 9 (SIGKILL)"; `status`: from waitpid.
TITAN_API std::string how_it_ended(int status);

/// The exit code a shell would show: 128 + n for signal n.
TITAN_API int exit_code_of(int status);

/// "SIGTERM"
TITAN_API std::string signal_name(int signal);

}  // namespace titan
