// Signals that reach the launcher from outside, and what follows for its ranks. Used by
// rank_group.cpp and in_process_group.cpp.
#pragma once

#include <optional>
#include <vector>

#include "screen.h"

namespace titan::launching {

class OutsideSignals {
 public:
  enum class Response { ignore, pass_on, kill };
  /// Each signal is passed on once, SIGUSR2 any number of times. A second termination signal kills.
  /// Says on the screen what follows.
  Response take(int signal, Screen& screen);

  /// The second termination signal.
  std::optional<int> killed_by() const { return killed_by_; }
  bool asked_for_the_end() const;
  /// Whether a signal other than SIGUSR2 was passed on.
  bool asked_to_stop() const;
  /// Whether a rank that ended with `status` did what a signal or a watcher asked for.
  bool is_requested_stop(int status) const;

 private:
  std::vector<int> passed_on_;  ///< each once
  std::optional<int> killed_by_;
};

}  // namespace titan::launching
