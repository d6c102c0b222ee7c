// How the ranks of a group find out whether they share a machine, and give each other their
// segments.
#pragma once

#include <optional>
#include <string>

#include <titan/dist/endpoint.h>

#include "engine.h"

namespace titan::cpu {

/// What came of a meeting, the same on every rank.
struct Meeting {
  std::optional<Members> members;
  std::string reason;  ///< why there are none: the first rank's for which it did not work
};

/// Ranks share a machine when each has mapped the segments of all others. Those who cannot (another
/// boot id, user or network namespace) learn it from the store at once. Nothing stays behind: the
/// sockets have no place in the file system, the segments no name.
///
/// Throws a std::exception when a rank does not come to the store in the endpoint's time.
Meeting meet(const dist::Endpoint& endpoint);

}  // namespace titan::cpu
