#include "transport.h"

#include <chrono>
#include <exception>
#include <string>
#include <utility>

#include <titan/error.h>
#include <titan/log.h>

#include "gloo_backend.h"
#include "shared_memory/meeting.h"
#include "shared_memory/shared_memory_backend.h"

namespace titan::cpu {
namespace {

Meeting meet_in_time(const dist::Endpoint& endpoint) {
  try {
    return meet(endpoint);
  } catch (const std::exception& e) {
    const std::string text = e.what();
    fail(ErrorKind::distributed, "rank ", endpoint.rank, " of ", endpoint.size,
         " could not connect group '", endpoint.name, "' within ",
         std::chrono::duration<double>(endpoint.timeout).count(),
         " s: ", text.substr(0, text.find('\n')));
  }
}

}  // namespace

std::shared_ptr<dist::Backend> connect(const dist::Endpoint& endpoint, Transport transport) {
  if (transport == Transport::gloo) return connect_gloo(endpoint);
  Meeting meeting = meet_in_time(endpoint);
  if (meeting.members) {
    if (endpoint.rank == 0)
      log::info("group '" + endpoint.name + "': " + std::to_string(endpoint.size) +
                " ranks through shared memory");
    return make_shared_memory_backend(std::move(*meeting.members), endpoint.timeout);
  }
  TITAN_CHECK(transport != Transport::shared_memory, distributed, "group '", endpoint.name,
              "' cannot use shared memory, as device.cpu.transport asks: ", meeting.reason,
              "; \"auto\" takes gloo where that is so");
  if (endpoint.rank == 0)
    log::info("group '" + endpoint.name + "': " + std::to_string(endpoint.size) +
              " ranks over gloo, not through shared memory: " + meeting.reason);
  return connect_gloo(endpoint);
}

}  // namespace titan::cpu
