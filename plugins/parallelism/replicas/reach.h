// Connections to the stores of other groups, and which groups have none. Used by GroupLink.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <c10/util/intrusive_ptr.h>

#include "membership/membership.h"

namespace c10d {
class Store;
}

namespace titan::replicas {

/// The host of "host:port".
std::string host_of(const std::string& address);

/// Throws if nothing accepts the connection in time.
c10::intrusive_ptr<c10d::Store> open_store(const std::string& address,
                                           std::chrono::milliseconds timeout);

/// After groups that the lighthouse lists could not connect: what this process finds when it tries
/// the store of each other member once, for at most `timeout` each. A text for a warning.
std::string reach_text(const std::vector<Member>& members, const std::string& own_id,
                       std::chrono::milliseconds timeout);

}  // namespace titan::replicas
