#include "roster.h"

#include <algorithm>
#include <map>
#include <utility>

#include <titan/error.h>

namespace titan::replicas {
namespace {

/// The epoch of most members; empty if no member trains yet.
std::string common_epoch(const std::vector<std::pair<Member, GroupData>>& all) {
  std::map<std::string, size_t> counts;
  for (const auto& [member, data] : all)
    if (!data.epoch.empty()) ++counts[data.epoch];
  std::string common;
  size_t most = 0;
  for (const auto& [epoch, count] : counts)
    if (count > most) most = count, common = epoch;
  return common;
}

/// Empty if the group may train with `first`.
std::string difference(const GroupData& first, const GroupData& other) {
  if (other.world_size != first.world_size)
    return "it has " + std::to_string(other.world_size) + " ranks, the others have " +
           std::to_string(first.world_size);
  if (other.identity != first.identity)
    return "its program, plugins or settings are not those of the others";
  return {};
}

}  // namespace

Value to_value(const GroupData& data) {
  return Value::map({{"titan", 1},
                     {"replica", data.replica},
                     {"identity", data.identity},
                     {"epoch", data.epoch},
                     {"world_size", data.world_size}});
}

GroupData data_of(const Member& member) {
  try {
    return {.replica = member.data.at("replica").as_integer(),
            .identity = member.data.at("identity").as_string(),
            .epoch = member.data.at("epoch").as_string(),
            .world_size = member.data.at("world_size").as_integer()};
  } catch (const Error&) {
    fail(ErrorKind::distributed, "'", member.id,
         "' is a replica group of a Titan that this one cannot train with; start all groups with "
         "the same version");
  }
}

std::optional<size_t> Roster::place_of(const std::string& id) const {
  for (size_t i = 0; i < members.size(); ++i)
    if (members[i].id == id) return i;
  return std::nullopt;
}

Roster roster_of(const Quorum& quorum, int64_t group_size) {
  Roster roster;
  std::vector<std::pair<Member, GroupData>> all;
  for (const Member& member : quorum.members)
    if (member.data.find("titan"))
      all.emplace_back(member, data_of(member));
    else
      roster.ignored.push_back(member.id);
  const std::string epoch = common_epoch(all);
  std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
    const bool trains = !epoch.empty() && a.second.epoch == epoch;
    const bool other_trains = !epoch.empty() && b.second.epoch == epoch;
    if (trains != other_trains) return trains;
    return a.first.step != b.first.step ? a.first.step > b.first.step : a.first.id < b.first.id;
  });
  std::map<int64_t, std::string> numbers;
  for (const auto& [member, data] : all) {
    std::string reason = difference(all.front().second, data), twin;
    if (const auto [same, is_new] = numbers.emplace(data.replica, member.id);
        !is_new && reason.empty()) {
      twin = same->second;
      reason = "'" + twin + "' has fault_tolerance.replica_id = " + std::to_string(data.replica) +
               " too";
    }
    if (!reason.empty())
      roster.refused.push_back({member, reason, twin});
    else if (group_size > 0 && roster.members.size() >= static_cast<size_t>(group_size))
      roster.spares.push_back(member);
    else
      roster.members.push_back(member);
  }
  return roster;
}

bool must_connect(const Roster& roster, const std::vector<std::string>& connected_ids,
                  const std::string& epoch) {
  if (roster.members.size() != connected_ids.size()) return true;
  return std::any_of(roster.members.begin(), roster.members.end(), [&](const Member& member) {
    return std::find(connected_ids.begin(), connected_ids.end(), member.id) ==
               connected_ids.end() ||
           member.commit_failures > 0 || data_of(member).epoch != epoch;
  });
}

Rows rows_of(int64_t num_rows, int64_t rows_per_round, size_t place, size_t num_members) {
  const int64_t rounds = num_rows / rows_per_round;
  const auto members = static_cast<int64_t>(num_members), own = static_cast<int64_t>(place);
  const int64_t each = rounds / members, more = rounds % members;
  const int64_t first = own * each + std::min(own, more);
  return {first * rows_per_round, (each + (own < more ? 1 : 0)) * rows_per_round};
}

std::vector<std::optional<size_t>> sources_of(const std::vector<Progress>& all, size_t offset) {
  int64_t step = -1;
  for (const Progress& one : all)
    if (one.is_sound) step = std::max(step, one.step);
  if (step < 0) return {};
  std::map<std::string, size_t> holders;
  for (const Progress& one : all)
    if (one.is_sound && one.step == step) ++holders[one.lineage];
  const Progress* reference = nullptr;
  for (const Progress& one : all)
    if (one.is_sound && one.step == step &&
        (!reference || holders[one.lineage] > holders[reference->lineage]))
      reference = &one;
  std::vector<size_t> fresh;
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].is_sound && all[i].step == step && all[i].lineage == reference->lineage)
      fresh.push_back(i);
  std::vector<std::optional<size_t>> sources(all.size());
  for (size_t i = 0; i < all.size(); ++i)
    if (std::find(fresh.begin(), fresh.end(), i) == fresh.end())
      sources[i] = fresh[offset++ % fresh.size()];
  return sources;
}

}  // namespace titan::replicas
