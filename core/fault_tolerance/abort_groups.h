// What a rank does instead of ending when the run has failed on another one. Nothing uses it yet.
#pragma once

#include <string>

#include "core/runtime/groups/failure_policy.h"

namespace titan::core {

/// Takes the trainer thread out of what it waits for, which then throws a distributed Error. The
/// caller may go on, with other members or from the last step that was committed. What cannot be
/// ended is left to the transport's timeout or, `ends_process`, ended with the process.
class AbortGroups final : public EndProcess {
 public:
  explicit AbortGroups(bool ends_process = true) : ends_process_(ends_process) {}
  void learned(const std::string& failure, const dist::Mesh* mesh) override {
    if (mesh) mesh->abort(failure);
  }
  void overdue(const std::string& error) override {
    if (ends_process_) EndProcess::overdue(error);
  }

 private:
  bool ends_process_;
};

}  // namespace titan::core
