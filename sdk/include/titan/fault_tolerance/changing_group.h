// A group whose members change between steps: replicas that come and go while the rest of a run
// trains on. Made by whoever decides who belongs to it; everybody else holds the Group.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <titan/dist/group.h>
#include <titan/export.h>

namespace titan::dist {

/// Who belongs to a group for a while, as one member sees it.
struct Membership {
  std::string epoch;  ///< of these members alone: no earlier set of them had it
  int rank = 0;       ///< of this member among them
  int size = 1;
};

/// One Group for the whole run over one backend after the other. Thread: trainer thread; but for
/// `abort` of the group.
class TITAN_API ChangingGroup {
 public:
  /// Connects the members of an epoch, for instance by Device::connect with an Endpoint whose name
  /// holds the epoch. Not called for a member that is alone.
  using Connect = std::function<std::shared_ptr<Backend>(const Membership& members)>;

  /// What a collective does that fails because a member is gone.
  enum class OnFailure {
    throws,  ///< as in every group: the step, and with it the run, ends in an error
    records  ///< it ends without one and `failure` says what happened; what it was to compute is
             ///< undefined. All later ones of the epoch do nothing. For a member that has to stay
             ///< in step with ranks of its own which do not see the failure: who judges the step
             ///< asks `failure` on every rank, and has it repeated (StepMember::judge).
  };

  /// This member alone, until `change`.
  ChangingGroup(std::string name, Connect connect, OnFailure on_failure = OnFailure::throws,
                std::shared_ptr<Recorder> recorder = nullptr);
  ~ChangingGroup();
  ChangingGroup(const ChangingGroup&) = delete;
  ChangingGroup& operator=(const ChangingGroup&) = delete;

  /// Copies of it follow every change: rank(), size() and all collectives are those of the members
  /// of the day.
  const Group& group() const;
  const Membership& members() const;

  /// [between steps, no collective under way] From now on these belong to it. Blocks until all of
  /// them are there. Does nothing when the epoch is the present one; one in which something failed
  /// is used up (internal Error). Throws what Connect throws when they do not come; this member is
  /// alone then.
  void change(const Membership& members);

  /// What failed first in the present epoch, where failures are recorded.
  std::optional<std::string> failure() const;

 private:
  class Switch;

  Connect connect_;
  Membership members_;
  std::shared_ptr<Switch> switch_;
  Group group_;
};

}  // namespace titan::dist
