// Waits for what the launcher reacts to: signals, output of ranks, a screen that takes text again.
// Used by rank_group.cpp and in_process_group.cpp.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include <titan/program/signal_inbox.h>

#include "screen.h"

namespace titan::launching {

struct Ready {
  bool signals = false;
  std::vector<bool> descriptors;  ///< in the order given
};

/// Sleeps until a signal arrives, one of `descriptors` (-1: none) is readable, or `deadline`
/// passes. Writes waiting text to the screen.
Ready wait_for_events(const SignalInbox& signals, Screen& screen,
                      const std::vector<int>& descriptors,
                      const std::optional<std::chrono::steady_clock::time_point>& deadline);

}  // namespace titan::launching
