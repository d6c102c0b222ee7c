// Rendezvous of the ranks of a group for shared memory: finds out whether they share a machine and
// exchanges their segments. Used by the cpu device's Connector.
#pragma once

#include <optional>
#include <string>

#include <titan/dist/endpoint.h>

#include "engine.h"

namespace titan::cpu {

/// Result of the rendezvous, the same on every rank.
struct PeerSegments {
  std::optional<Members> members;
  std::string reason;  ///< if there are no members: why the first failing rank failed
};

/// Ranks share a machine when each has mapped the segments of all others. Ranks that cannot
/// (another boot id, user or network namespace) learn this from the store at once. Nothing is left
/// behind: the sockets have no path in the file system, the segments no name.
///
/// Throws a std::exception when a rank does not write to the store within the endpoint's timeout.
PeerSegments connect_segments(const dist::Endpoint& endpoint);

}  // namespace titan::cpu
