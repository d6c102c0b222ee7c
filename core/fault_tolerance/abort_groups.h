// Lets a rank survive the failure of another rank: it aborts the groups instead of ending the
// process. Used by rounds of training (core/engine/rounds).
#pragma once

#include <string>

#include "core/runtime/groups/failure_policy.h"

namespace titan::core {

/// Interrupts the collective that the trainer thread waits for, which then throws a distributed
/// Error. The caller may continue with other members or from the last committed step. A collective
/// that cannot be aborted runs into the transport's timeout, or with `ends_process` the process is
/// ended.
class AbortGroups final : public EndProcess {
 public:
  explicit AbortGroups(bool ends_process = true) : ends_process_(ends_process) {}
  void learned(const std::string& failure, const dist::Mesh* mesh) override {
    if (mesh) mesh->abort(failure);
  }
  void overdue(const std::string& error) override {
    if (ends_process_) EndProcess::overdue(error);
  }
  /// Ends the process: a thread that hangs does not come back.
  void hung(const std::string& error) override { EndProcess::overdue(error); }

 private:
  bool ends_process_;
};

}  // namespace titan::core
