// The exit codes of Titan's programs. Used by the commands and by the launcher.
#pragma once

namespace titan {

/// Exit codes of the program (docs/reference/exit_codes.md explains them).
enum ExitCode : int {
  kExitDone = 0,
  kExitRuntimeError = 1,
  kExitConfigError = 2,  ///< usage, configuration
  kExitPluginError = 3,
  kExitSameFailure = 70,   ///< titan launch: restarts repeat one failure without progress
  kExitRequeue = 75,       ///< SIGTERM or SIGUSR1: a checkpoint is complete; start the job again
  kExitInterrupted = 130,  ///< SIGINT: finished the current step, saved if checkpoints are enabled,
                           ///< closed everything
  kExitTerminated = 143,   ///< SIGTERM or SIGUSR1 without checkpoints: finished the current step,
                           ///< closed everything
};

}  // namespace titan
