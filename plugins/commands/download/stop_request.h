// Asks all threads of a download to end: SIGINT, SIGTERM, or one of them that cannot go on. Used by
// everything in core/download that waits.
#pragma once

#include <atomic>

namespace titan::download {

/// Installs its handlers for its lifetime; one at a time in the process. A second signal ends the
/// process at once. Thread-safe.
class StopRequest {
 public:
  StopRequest();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;

  void ask();
  bool is_asked() const;
  /// The signal that asked; 0 when none did.
  int signal() const;
  /// Waits so long or until asked; whether it was asked.
  bool wait(double seconds) const;

 private:
  int descriptor_;
};

/// Thrown out of a transfer that was asked to end; not an error.
struct Stopped {};

}  // namespace titan::download
