// What a rank does when it learns that the run has failed on another one. Used by FailureWatch.
#pragma once

#include <string>

#include <titan/dist/mesh.h>

namespace titan::core {

/// Called by the thread that watches, while the trainer thread may be in a collective that nobody
/// will end.
class FailurePolicy {
 public:
  virtual ~FailurePolicy() = default;

  /// As soon as this rank knows. `mesh`: its groups; null before there are any.
  virtual void learned(const std::string& failure, const dist::Mesh* mesh) = 0;
  /// FailureWatch::kPatience later the trainer thread is still busy. `error`: what to tell the user
  /// of it.
  virtual void overdue(const std::string& error) = 0;
};

/// Leaves the trainer thread the time to fail by itself, then ends the process.
class EndProcess : public FailurePolicy {
 public:
  void learned(const std::string&, const dist::Mesh*) override {}
  /// Prints the error, writes the error file that the launcher reads, and exits.
  void overdue(const std::string& error) override;
};

}  // namespace titan::core
