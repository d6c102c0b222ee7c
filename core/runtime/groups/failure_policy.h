// What a rank does when it learns that another rank has failed. Used by FailureWatch.
#pragma once

#include <string>

#include <titan/dist/mesh.h>

namespace titan::core {

/// Called by the watching thread, while the trainer thread may be in a collective that will never
/// complete.
class FailurePolicy {
 public:
  virtual ~FailurePolicy() = default;

  /// Called as soon as this rank knows. `mesh`: its groups; null before they exist.
  virtual void learned(const std::string& failure, const dist::Mesh* mesh) = 0;
  /// Called if the trainer thread is still busy FailureWatch::kPatience later. `error`: the report
  /// for the user.
  virtual void overdue(const std::string& error) = 0;
  /// Called if the trainer thread of this rank hangs, so it is not given time.
  virtual void hung(const std::string& error) { overdue(error); }
};

/// Gives the trainer thread time to fail by itself, then ends the process.
class EndProcess : public FailurePolicy {
 public:
  void learned(const std::string&, const dist::Mesh*) override {}
  /// Prints the error, writes the error file that the launcher reads, and exits.
  void overdue(const std::string& error) override;
};

}  // namespace titan::core
