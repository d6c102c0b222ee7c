// The signals that stop a run. SIGINT, SIGTERM, SIGUSR1: the first requests a stop after the
// current step; a second SIGINT or SIGTERM exits at once. While a run is set up, the first SIGINT
// or SIGTERM exits at once. SIGUSR2 requests a flight record.
#pragma once

#include <titan/export.h>

namespace titan {

/// Installs the handlers for its lifetime. At most one per process.
class TITAN_API StopSignals {
 public:
  /// Effect of the first SIGINT or SIGTERM. `ends`, exit at once, is for a run that is being set
  /// up: it may wait for a file or for other ranks for ever, and has no step to finish.
  enum class First { asks, ends };

  explicit StopSignals(First first = First::asks);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;

  /// From now on the first signal only requests a stop; the caller polls received().
  void begin_to_ask();
  /// The signal that requested the stop, or 0. Handlers only set a flag; the trainer polls it at
  /// each step boundary.
  static int received();
  /// Whether SIGUSR2 was received since the last call.
  static bool take_record_request();
};

/// Blocks all signals for the calling thread, so that only the trainer's thread receives them.
TITAN_API void block_signals();

}  // namespace titan
