// SIGUSR2 asks for a record of what the rank communicates. SIGINT, SIGTERM, SIGUSR1: the first asks
// the run to end after the current step; a second SIGINT or SIGTERM ends it at once, and so does
// the first while a run is set up.
#pragma once

#include <titan/export.h>

namespace titan {

/// Installs the handlers for its lifetime. One at a time in the process.
class TITAN_API StopSignals {
 public:
  /// What the first SIGINT or SIGTERM does: a run that is being set up may wait for a file or for
  /// other ranks for ever, and has no step to finish.
  enum class First { asks, ends };

  explicit StopSignals(First first = First::asks);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;

  /// From here on somebody asks received() soon.
  void begin_to_ask();
  /// The signal that asks the run to end, or 0. Handlers only set a flag; the trainer asks at each
  /// step boundary.
  static int received();
  /// Whether SIGUSR2 came since the last time that this was asked.
  static bool take_record_request();
};

/// Blocks all signals for the calling thread, so that the trainer's thread alone sees them.
TITAN_API void block_signals();

}  // namespace titan
