// Which replica groups train together. Used by the plugin replicas on rank 0 of each group.
//
// A replica group is a whole job. A service outside of the groups decides which of them are members
// of the next step; here it is torchft's lighthouse. No torch.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <titan/value.h>

namespace titan::replicas {

/// One replica group in a request or in an answer (torchft: QuorumMember).
struct Member {
  std::string id;       ///< "replica_<n>:<uuid4>"; another one after each start
  std::string address;  ///< of the group, for the other groups
  std::string store;    ///< address of the group's store
  int64_t step = 0;     ///< the last committed step
  int64_t world_size = 1;
  Value data;  ///< anything; the service returns it unchanged
  int64_t commit_failures = 0;

  friend bool operator==(const Member&, const Member&) = default;
};

/// The groups that train together, the same for all of them.
struct Quorum {
  int64_t id = 0;     ///< grows with a change of members; a restarted service begins again
  std::string epoch;  ///< unique to this answer; digits, a to f and "-"
  std::string self;   ///< the id of the member that asked
  std::vector<Member> members;  ///< sorted by id

  friend bool operator==(const Quorum&, const Quorum&) = default;
};

/// A group's link to the service. The group is alive for the service until leave(), also while no
/// request is open. Thread: one at a time.
class Membership {
 public:
  virtual ~Membership();

  /// Requests the members of the next step. Does not block. Throws an internal Error while another
  /// request is open. The request stays open until answer() returns it; it is never made twice.
  virtual void ask(const Member& self) = 0;

  /// The answer to the open request, or nothing if it does not come within `patience`. Throws a
  /// distributed Error if the service is unreachable or rejects the request.
  ///
  /// `self` of the answer is the id that other groups know this group by. It differs from the id in
  /// ask() if the service may still list a lost request under that id.
  virtual std::optional<Quorum> answer(std::chrono::milliseconds patience) = 0;

  /// Ends the link: the service finds this group dead soon. Further requests are errors.
  virtual void leave() = 0;
};

struct AgentOptions {
  std::string lighthouse;                      ///< "http://host:29510"
  std::string setting = "TORCHFT_LIGHTHOUSE";  ///< where that address comes from, for messages
  std::string id;                              ///< this group's; make_member_id()
  std::chrono::milliseconds beat{100};         ///< between two heartbeats
  std::chrono::milliseconds connect_timeout{60000};  ///< for a lighthouse that does not answer
  std::filesystem::path program;                     ///< empty: titan-replica next to the plugin
};

/// Starts titan-replica, which speaks to torchft's lighthouse. It sends heartbeats only while this
/// process runs, and ends with it. Throws a config Error for a malformed address and an io Error if
/// the program cannot be started; whether the lighthouse is there, answer() tells.
std::unique_ptr<Membership> start_agent(const AgentOptions& options);

/// "replica_<replica>:<uuid4>", another one at each call.
std::string make_member_id(int64_t replica);
/// `id` with another uuid4.
std::string renewed_member_id(const std::string& id);

}  // namespace titan::replicas
