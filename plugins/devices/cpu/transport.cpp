#include "transport.h"

#include <chrono>
#include <exception>
#include <string>
#include <utility>

#include <titan/error.h>
#include <titan/log.h>

#include "../common/gloo_backend.h"
#include "shared_memory/peer_segments.h"
#include "shared_memory/shared_memory_backend.h"

namespace titan::cpu {
namespace {

PeerSegments connect_in_time(const dist::Endpoint& endpoint) {
  try {
    return connect_segments(endpoint);
  } catch (const std::exception& e) {
    const std::string text = e.what();
    fail(ErrorKind::distributed, "rank ", endpoint.rank, " of ", endpoint.size,
         " could not connect group '", endpoint.name, "' within ",
         std::chrono::duration<double>(endpoint.timeout).count(),
         " s: ", text.substr(0, text.find('\n')));
  }
}

}  // namespace

std::shared_ptr<dist::Backend> Connector::connect(const dist::Endpoint& endpoint) {
  if (transport_ == Transport::gloo) return connect_gloo(endpoint);
  PeerSegments segments = connect_in_time(endpoint);
  const std::string ranks = std::to_string(endpoint.size) + " ranks of group '" + endpoint.name;
  if (segments.members) {
    if (!said_shared_memory_.exchange(true))
      log::info(ranks + "' and of other groups on one machine communicate through shared memory");
    return make_shared_memory_backend(std::move(*segments.members), endpoint.timeout);
  }
  TITAN_CHECK(transport_ != Transport::shared_memory, distributed, "group '", endpoint.name,
              "' cannot use shared memory, which device.transport requires: ", segments.reason,
              "; \"auto\" uses gloo in this case");
  if (!said_gloo_.exchange(true))
    log::info(ranks + "' communicate over gloo, not through shared memory: " + segments.reason);
  return connect_gloo(endpoint);
}

}  // namespace titan::cpu
