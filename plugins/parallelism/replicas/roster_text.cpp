#include "roster_text.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

#include <titan/program/host.h>

namespace titan::replicas {
namespace {

constexpr size_t kMostLines = 10;
constexpr std::string_view kOwnOptions[] = {"address", "lighthouse", "replica_id"};

/// Whether groups of one run may have different values of the setting `name`.
bool is_own(std::string_view name) {
  for (const std::string_view section : {"parallelism.replicas.", "parallelism.semi_sync."})
    if (name.starts_with(section))
      return std::find(std::begin(kOwnOptions), std::end(kOwnOptions),
                       name.substr(section.size())) != std::end(kOwnOptions);
  return false;
}

std::map<std::string, std::string> as_map(const Value& list) {
  std::map<std::string, std::string> map;
  for (const Value& item : list.as_list())
    map[item.at("name").as_string()] = item.at("value").as_string();
  return map;
}

}  // namespace

std::string short_name(const std::string& id) {
  return id.substr(0, id.find(':'));
}

std::string names_of(const std::vector<Member>& members) {
  std::string names;
  for (const Member& member : members) names += (names.empty() ? "" : ", ") + short_name(member.id);
  return names;
}

std::string announced_host(const std::string& configured, const std::string& lighthouse) {
  if (!configured.empty()) return configured;
  for (const char* loopback : {"//localhost", "//127.", "//[::1]"})
    if (lighthouse.find(loopback) != std::string::npos) return "127.0.0.1";
  return host_name();
}

Value common_identity(const Value& identity) {
  Value common = Value::list();
  for (const Value& item : identity.as_list())
    if (!is_own(item.at("name").as_string())) common.as_list().push_back(item);
  return common;
}

std::string identity_differences(const Value& others, const Value& own) {
  const std::map<std::string, std::string> theirs = as_map(others), ours = as_map(own);
  std::set<std::string> names;
  for (const auto& [name, value] : theirs) names.insert(name);
  for (const auto& [name, value] : ours) names.insert(name);
  const auto text = [](const auto& map, const std::string& name) {
    const auto found = map.find(name);
    return found == map.end() ? std::string("missing") : found->second;
  };
  std::string lines;
  size_t count = 0;
  for (const std::string& name : names) {
    const std::string here = text(ours, name), there = text(theirs, name);
    if (here == there) continue;
    if (++count <= kMostLines)
      lines += "\n  " + name + " is " + here + " here and " + there + " there";
  }
  if (count > kMostLines) lines += "\n  ... and " + std::to_string(count - kMostLines) + " more";
  return lines;
}

}  // namespace titan::replicas
