// Requests all threads of a download to stop: after SIGINT or SIGTERM, or when one thread fails.
// Used by every file of this folder that waits.
#pragma once

#include <atomic>

namespace titan::download {

/// Installs signal handlers for its lifetime; at most one per process. A second signal ends the
/// process at once. Thread-safe.
class StopRequest {
 public:
  StopRequest();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;

  void ask();
  bool is_asked() const;
  /// The signal that requested the stop; 0: none.
  int signal() const;
  /// Waits for this time or until a stop is requested. Returns whether one is requested.
  bool wait(double seconds) const;

 private:
  int descriptor_;
};

/// Thrown out of a transfer after a stop request; not an error.
struct Stopped {};

}  // namespace titan::download
