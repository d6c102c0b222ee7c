// A group whose members change between steps: replicas join and leave while the others keep
// training. The code that decides on membership owns the ChangingGroup; other code uses its Group.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <titan/dist/group.h>
#include <titan/export.h>

namespace titan::dist {

/// The members of a group during one epoch, as one member sees them.
struct Membership {
  std::string epoch;  ///< unique to this set of members; no earlier set had it
  int rank = 0;       ///< of this member
  int size = 1;
};

/// One Group for the whole run over a sequence of backends. Thread: trainer thread, except for
/// `abort` of the group.
class TITAN_API ChangingGroup {
 public:
  /// Connects the members of an epoch, for instance by Device::connect with an Endpoint whose name
  /// holds the epoch. Not called for a member that is alone.
  using Connect = std::function<std::shared_ptr<Backend>(const Membership& members)>;

  /// What a collective does if it fails because a member is gone.
  enum class OnFailure {
    throws,  ///< it throws, as in every group: the step, and with it the run, fails
    records  ///< it returns normally with an undefined result, and `failure` reports the error.
             ///< All later collectives of the epoch do nothing. For a member of several ranks, not
             ///< all of which see the failure: StepMember::judge asks `failure` on every rank and
             ///< has the step repeated.
  };

  /// The group holds this member alone until `change`.
  ChangingGroup(std::string name, Connect connect, OnFailure on_failure = OnFailure::throws,
                std::shared_ptr<Recorder> recorder = nullptr);
  ~ChangingGroup();
  ChangingGroup(const ChangingGroup&) = delete;
  ChangingGroup& operator=(const ChangingGroup&) = delete;

  /// Copies of it follow every change: rank(), size() and all collectives refer to the current
  /// members.
  const Group& group() const;
  /// The same members; here a failed collective throws under both values of OnFailure. For
  /// exchanges between steps, whose results other code reads.
  const Group& strict() const;
  const Membership& members() const;

  /// [between steps, no collective in flight] Changes the members of the group. Blocks until all of
  /// them have connected. Does nothing if the epoch is the current one; throws an internal Error if
  /// a failure was recorded in it. Throws what Connect throws; this member is then alone.
  void change(const Membership& members);

  /// The first failure of the current epoch; only with OnFailure::records.
  std::optional<std::string> failure() const;

 private:
  class Switch;
  class Strict;

  Connect connect_;
  Membership members_;
  std::shared_ptr<Switch> switch_;
  Group group_;
  Group strict_;
};

}  // namespace titan::dist
