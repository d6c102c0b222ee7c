// How a program of Titan ends. Used by the commands and by the launcher.
#pragma once

namespace titan {

/// Exit codes of the program (docs/internals/architecture.md lists them too).
enum ExitCode : int {
  kExitDone = 0,
  kExitRuntimeError = 1,
  kExitConfigError = 2,  ///< usage, configuration
  kExitPluginError = 3,
  kExitRequeue = 75,       ///< SIGTERM or SIGUSR1: a checkpoint is complete, please start again
  kExitInterrupted = 130,  ///< SIGINT: the current step was finished, saved where there are
                           ///< checkpoints, and everything closed
  kExitTerminated = 143,  ///< SIGTERM or SIGUSR1 without checkpoints: the current step was finished
                          ///< and everything closed
};

}  // namespace titan
