// The link of one replica group to the others: finds the members of the next step, connects the
// same ranks of all groups, moves state to groups that are behind and assigns rows. The plugins
// `replicas` and `semi_sync` own one.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <c10/util/intrusive_ptr.h>
#include <titan/device.h>
#include <titan/dist/mesh.h>
#include <titan/fault_tolerance/changing_group.h>
#include <titan/fault_tolerance/replicas.h>

#include "membership/membership.h"
#include "roster.h"

namespace c10d {
class Store;
}

namespace titan::replicas {

/// Options of every plugin that owns a link.
struct GroupLinkOptions {
  int64_t replica_id = 0;
  int64_t group_size = 0;
  int64_t min_replica_size = 1;
  int64_t timeout_ms = 10000;
  std::string lighthouse;  ///< empty: the environment's
  std::string address;     ///< host that other groups reach; empty: automatic
};

/// Rank 0 asks the membership service, and all ranks of the group follow its answer. A group that
/// joins takes its state from one that trains. In a step, collectives between groups do not throw;
/// `agree` looks at their failure. Thread: trainer thread; all ranks call the same functions.
class GroupLink {
 public:
  enum class Meets {
    each_step,  ///< groups hold equal states after each step; one of them writes checkpoints
    rarely,     ///< their states differ in between: each writes its own checkpoints, and
                ///< meet() always shares the data positions
  };

  GroupLink(const GroupLinkOptions& options, Device& device, Meets meets = Meets::each_step);
  ~GroupLink();
  GroupLink(const GroupLink&) = delete;

  /// [once, before the first step] `run` and `mesh` outlive this.
  void join(ReplicaRun& run, dist::Mesh& mesh);
  /// [from join on] The same rank of all groups that train; a failed collective is recorded.
  const dist::Group& group() const;
  /// [between steps] Finds the members, takes over state and assigns rows where they changed.
  /// Returns false on every rank if a stop was requested. Throws if this group cannot take part. If
  /// groups meet before every step, the members of the next call are requested right away, and
  /// their answer costs no time. A group that comes is then a member one call later.
  bool meet();
  /// Whether the last meet() took over the state of another group.
  bool has_taken() const { return has_taken_; }
  /// The members since the last meet().
  const std::string& epoch() const { return epoch_; }
  /// The judgement of all groups; Verdict::restart if a collective of this step has failed.
  Judgement agree(const Step& step, Judgement judgement);
  /// [when a step threw] Ends the connections to other groups, without communication with the ranks
  /// of this one.
  void failed() noexcept;
  /// The step was committed or skipped, with the members of this epoch.
  void count(int64_t step);
  /// [instead of count] The state of this group. Groups with equal texts at equal steps keep their
  /// own states when they meet.
  void set_progress(int64_t step, const std::string& lineage);
  const std::string& lineage() const { return progress_.lineage; }
  /// [every rank of all members] Whether no rank says no and no collective since meet() has
  /// failed. After a no the members connect anew in the next meet().
  bool vote(bool yes);

 private:
  bool find_members();
  Member self() const;
  std::optional<Quorum> quorum();
  std::string rank_zeros_news();
  bool waits_for_twin(const Roster& roster);
  void warn_of_ignored(const Roster& roster);
  void warn_of_unreachable(const Roster& roster);
  void refuse(const Roster::Refused& refused, const Roster& roster) const;
  bool train_with(const Roster& roster, const std::string& epoch);
  void connect(const Roster& roster, const std::string& epoch);
  void exchange_state(const Roster& roster);
  void share_positions();
  void disconnect(const std::string& why);
  void leave(const std::string& why);
  bool all_ranks(bool ok) const;
  void say(const std::string& text);

  GroupLinkOptions options_;
  Device& device_;
  Meets meets_;
  ReplicaRun* run_ = nullptr;
  dist::Mesh* mesh_ = nullptr;
  std::unique_ptr<Membership> membership_;  // on rank 0
  c10::intrusive_ptr<c10d::Store> store_;   // that other groups meet at; on rank 0
  std::string store_address_;
  std::string id_;
  std::string identity_;  // hash
  std::unique_ptr<dist::ChangingGroup> group_;
  std::string next_store_;  // of the members that `connect` is called for
  bool is_one_host_ = false;
  std::vector<std::string> connected_ids_;
  std::string epoch_;          // empty: not connected
  bool is_connected_ = false;  // to connected_ids_, which are kept when a step fails
  Progress progress_;
  int64_t commit_failures_ = 0;
  int64_t failures_to_connect_ = 0;  // in a row
  bool has_asked_ = false;           // on rank 0: a request is open
  bool has_asked_ahead_ = false;     // before the last step
  bool has_taken_ = false;
  std::string last_said_;
  std::string twin_;  // id of another group with this replica_id in the last answer that had one
  std::set<std::string> ignored_;  // ids of the quorum that a warning has named
};

}  // namespace titan::replicas
