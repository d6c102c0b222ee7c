// SIGINT, SIGTERM, SIGUSR1: the first asks the run to end after the current step; a second SIGINT
// or SIGTERM ends it at once.
#pragma once

namespace titan::core {

/// Installs the handlers for its lifetime. One at a time in the process.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;

  /// The signal that asks the run to end, or 0. Handlers only set a flag; the trainer asks at each
  /// step boundary.
  static int received();
};

/// Blocks all signals for the calling thread, so that the trainer's thread alone sees them.
void block_signals();

}  // namespace titan::core
