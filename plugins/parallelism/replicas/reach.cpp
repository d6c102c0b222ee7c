#include "reach.h"

#include <cstdint>
#include <exception>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "roster_text.h"

namespace titan::replicas {

std::string host_of(const std::string& address) {
  return address.substr(0, address.rfind(':'));
}

c10::intrusive_ptr<c10d::Store> open_store(const std::string& address,
                                           std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  options.isServer = false;
  options.waitWorkers = false;
  options.timeout = timeout;
  return c10::make_intrusive<c10d::TCPStore>(host_of(address), options);
}

std::string reach_text(const std::vector<Member>& members, const std::string& own_id,
                       std::chrono::milliseconds timeout) {
  std::string reached, missed;
  for (const Member& member : members) {
    if (member.id == own_id) continue;
    std::string* list = &reached;
    try {
      open_store(member.store, timeout);
    } catch (const std::exception&) {
      list = &missed;
    }
    *list += (list->empty() ? "" : ", ") + short_name(member.id) + " at " + member.store;
  }
  if (missed.empty())
    return "it reaches the store of " + reached +
           ", but not all ranks of these groups reach each other";
  return "it does not reach " + missed + (reached.empty() ? "" : ", but it reaches " + reached);
}

}  // namespace titan::replicas
