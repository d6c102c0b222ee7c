#include "agent_lines.h"

#include <unistd.h>

#include <cerrno>

namespace titan::replicas {

Value to_value(const Member& member) {
  return Value::map({{"id", member.id},
                     {"address", member.address},
                     {"store", member.store},
                     {"step", member.step},
                     {"world_size", member.world_size},
                     {"data", member.data},
                     {"commit_failures", member.commit_failures}});
}

Member member_of(const Value& value) {
  return {.id = value.at("id").as_string(),
          .address = value.at("address").as_string(),
          .store = value.at("store").as_string(),
          .step = value.at("step").as_integer(),
          .world_size = value.at("world_size").as_integer(),
          .data = value.at("data"),
          .commit_failures = value.at("commit_failures").as_integer()};
}

Value to_value(const Quorum& quorum) {
  Value::List members;
  for (const Member& member : quorum.members) members.push_back(to_value(member));
  return Value::map({{"id", quorum.id},
                     {"epoch", quorum.epoch},
                     {"self", quorum.self},
                     {"members", std::move(members)}});
}

Quorum quorum_of(const Value& value) {
  Quorum quorum = {.id = value.at("id").as_integer(),
                   .epoch = value.at("epoch").as_string(),
                   .self = value.at("self").as_string(),
                   .members = {}};
  for (const Value& member : value.at("members").as_list())
    quorum.members.push_back(member_of(member));
  return quorum;
}

bool LineBuffer::next(std::string& line) {
  const size_t end = bytes_.find('\n');
  if (end == bytes_.npos) return false;
  line = bytes_.substr(0, end);
  bytes_.erase(0, end + 1);
  return true;
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace titan::replicas
