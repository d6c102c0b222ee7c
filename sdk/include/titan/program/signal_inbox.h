// Signals as something that can be polled: while it lives, those of the process are queued
// here and interrupt nothing. Used by titan launch and titan bench.
#pragma once

#include <signal.h>

#include <optional>

#include <titan/export.h>
#include <titan/program/descriptor.h>

namespace titan {

class TITAN_API SignalInbox {
 public:
  /// Takes SIGCHLD and the signals that are passed on to ranks, but none that this process was told
  /// to ignore (nohup, a shell's background job). Throws an io Error.
  SignalInbox();
  ~SignalInbox();
  SignalInbox(const SignalInbox&) = delete;

  /// Readable when there is one.
  int descriptor() const { return descriptor_.get(); }
  /// The next signal, absent when there is none now.
  std::optional<int> next();
  /// The mask that was in force before, which children must get.
  const sigset_t& outer_mask() const { return outer_mask_; }

 private:
  Descriptor descriptor_;
  sigset_t outer_mask_;
};

}  // namespace titan
