// SIGINT and SIGTERM: the first asks the run to end after the current step, the second ends it at
// once.
#pragma once

namespace titan::core {

/// Installs the handlers for its lifetime. One at a time in the process.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;

  /// The signal that came first, or 0. Handlers only set a flag; the trainer asks at each step
  /// boundary.
  static int received();
};

}  // namespace titan::core
