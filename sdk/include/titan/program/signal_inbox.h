// Queues the signals of the process so that they can be polled instead of interrupting it. Used by
// titan launch and titan bench.
#pragma once

#include <signal.h>

#include <optional>

#include <titan/export.h>
#include <titan/program/descriptor.h>

namespace titan {

class TITAN_API SignalInbox {
 public:
  /// Queues SIGCHLD and the signals that are forwarded to ranks, except signals that this process
  /// ignores (nohup, a shell's background job). Throws an io Error.
  SignalInbox();
  ~SignalInbox();
  SignalInbox(const SignalInbox&) = delete;

  /// Readable if a signal is queued.
  int descriptor() const { return descriptor_.get(); }
  /// The next signal; absent if none is queued.
  std::optional<int> next();
  /// The previous signal mask, which children must get.
  const sigset_t& outer_mask() const { return outer_mask_; }

 private:
  Descriptor descriptor_;
  sigset_t outer_mask_;
};

}  // namespace titan
