// Decides from a quorum which groups train, which wait and which are refused, and assigns the rows
// of the global batch. Every group computes the same. No torch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "membership/membership.h"

namespace titan::replicas {

/// What a group tells the others about itself, in Member::data.
struct GroupData {
  int64_t replica = 0;   ///< fault_tolerance.replica_id
  std::string identity;  ///< hash of program, plugins and settings
  std::string epoch;     ///< of the members that it trains with; empty: none
  int64_t world_size = 1;
};

Value to_value(const GroupData& data);
/// Throws a distributed Error for a member that says too little about itself.
GroupData data_of(const Member& member);

struct Roster {
  std::vector<Member> members;  ///< those that train, at most group_size; the same order everywhere
  std::vector<Member> spares;   ///< wait for a place
  struct Refused {
    Member member;
    std::string reason;  ///< what differs from the first member
    std::string twin;    ///< id of the member with the same replica_id, if that is the reason
  };
  std::vector<Refused> refused;
  std::vector<std::string> ignored;  ///< ids of members that are no groups of Titan

  /// The index among those that train.
  std::optional<size_t> place_of(const std::string& id) const;
};

/// Groups that train together already come before others, and of those the ones of later steps: a
/// spare takes no place of a group whose connections have just failed. A group whose identity or
/// number of ranks differs from the first one's is refused, and so is a second group with the same
/// replica_id. `group_size`: 0 means no limit.
Roster roster_of(const Quorum& quorum, int64_t group_size);

/// Whether the members have to connect anew: one of them has failed in the last step, or does not
/// belong to `epoch`.
bool must_connect(const Roster& roster, const std::vector<std::string>& connected_ids,
                  const std::string& epoch);

struct Rows {
  int64_t first = 0, count = 0;
};
/// The rows of member `place` of `num_members`: blocks of whole rounds of `rows_per_round` rows.
/// The first members get one round more where the rounds cannot be divided evenly.
Rows rows_of(int64_t num_rows, int64_t rows_per_round, size_t place, size_t num_members);

/// A member's state when members connect.
struct Progress {
  int64_t step = 0;
  std::string lineage;   ///< equal texts at equal steps: equal bits
  bool is_sound = true;  ///< false: a transfer was interrupted
};

/// The member that each member takes its state from, or nothing for those that keep theirs: the
/// state of the greatest step that most members hold, of equally many the first member's. Empty:
/// no member is sound. Sources take turns, from `offset` on.
std::vector<std::optional<size_t>> sources_of(const std::vector<Progress>& all, size_t offset);

}  // namespace titan::replicas
